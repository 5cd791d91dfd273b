"""P-token x BS: the tokens to prefill at an instance times the requests there.

Zhang et al., "LMetric: Simple is Better - Multiplication May Be All You Need for LLM Request Scheduling",
arXiv 2603.15202.
"""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``P^a * BS^b`` per candidate, in the plain case in whole numbers."""
    if policy.normalize_hardware:
        return [_normalized(candidate, policy) for candidate in candidates]
    if policy.cold_start is not None or policy.spot is not None or policy.c not in (None, policy.b):
        return [_weighed(candidate, policy) for candidate in candidates]
    if policy.a == 1 and policy.b == 1:
        return [((v := c.view).queued_prefill_tokens + c.new_tokens) * (v.bs + 1) for c in candidates]
    a, b = policy.a, policy.b
    return [c.p_token**a * c.bs**b for c in candidates]


def _weighed(candidate: Candidate, policy: Policy) -> float:
    """``(new + Q * BS^(c-b))^a * BS^b``, times the instance's factor."""
    return float(candidate.factor * _work(candidate, policy) ** policy.a * candidate.bs**policy.b)


def _normalized(candidate: Candidate, policy: Policy) -> float:
    """``(P / prefill_rate)^a * (BS * decode_cost)^b``: seconds instead of tokens, for unequal hardware."""
    view = candidate.view
    hardware = view.observed if policy.observed_hardware and view.observed is not None else view.hardware
    if hardware is None:
        raise InvalidPolicy(f"instance {view.name} has no hardware profile, which {policy.label} needs")
    prefill_s = _work(candidate, policy) / hardware.prefill_tokens_per_s
    decode_s = candidate.bs * hardware.decode_cost_s
    return float(candidate.factor * prefill_s**policy.a * decode_s**policy.b)


def _work(candidate: Candidate, policy: Policy) -> float:
    """Return P-token, where the queued part weighs BS with the exponent c instead of b."""
    if policy.c is None or policy.c == policy.b:
        return candidate.p_token
    queued = candidate.view.queued_prefill_tokens
    return candidate.new_tokens + candidate.p_offset + queued * float(candidate.bs ** (policy.c - policy.b))


MULTIPLICATIVE = ScorerSpec(
    name="multiplicative",
    score=score,
    meaning="P-token (queued and new prefill tokens) times BS (requests there, with this one)",
    source="arXiv 2603.15202 (OSDI 2026)",
)
