"""What other policies would have chosen for a request that was decided: the same facts, the same ``decide()``.

A sample holds what each instance would have cost this request (hit, new, queued, BS), so only policies that read
nothing else can be asked; those that need engine reports or the past (``vllm``, ``round_robin``, ...) cannot, and are
not guessed.
"""

from collections.abc import Iterator
from random import Random

import msgspec

from router.core.decide import decide
from router.core.decision import Decision
from router.core.errors import ScorerFault
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.snapshot import DecisionSample

ANSWERABLE_SCORERS = frozenset(
    {"multiplicative", "multiplicative_raw", "marginal_delay", "least_pending_prefill", "least_request", "linear"}
)
ALTERNATIVES = (
    Policy(name="P-token × BS", scorer="multiplicative"),
    Policy(name="P-token alone", scorer="least_pending_prefill"),
    Policy(name="BS alone", scorer="least_request"),
    Policy(name="marginal delay", scorer="marginal_delay"),
    Policy(name="weighted sum, L = .7", scorer="linear"),
    Policy(name="new × BS without queue", scorer="multiplicative_raw"),
)


class Alternative(msgspec.Struct, frozen=True):
    """What one policy would have chosen; ``agrees`` with what was chosen."""

    policy: Policy
    chosen: str | None
    agrees: bool


def is_answerable(policy: Policy) -> bool:
    """Return whether a sample holds everything that a policy reads."""
    terms = (policy.load_adaptive, policy.cold_start, policy.hotspot, policy.spot)
    return policy.scorer in ANSWERABLE_SCORERS and not policy.normalize_hardware and not any(terms)


def decide_again(sample: DecisionSample, policy: Policy) -> Decision:
    """Decide a sampled request under another policy, among the candidates that were not filtered out.

    Ties that were broken by what the sample does not hold go to the instance that was chosen.

    :raises ScorerFault: when the policy cannot score these candidates.
    """
    racing = [candidate for candidate in sample.candidates if candidate.filtered is None]
    views = [
        InstanceView(
            slot=slot,
            name=candidate.instance,
            bs=candidate.bs - 1,
            queued_prefill_tokens=candidate.queued_prefill_tokens,
            kv_block_tokens=1,
            last_chosen=0 if candidate.instance == sample.chosen else 1,
        )
        for slot, candidate in enumerate(racing)
    ]
    request = Request(sample.request_id, sample.model, sample.prompt_tokens, tokens_per_block=1.0)
    return decide(request, views, [candidate.hit_tokens for candidate in racing], policy, Random(0))


def alternatives(sample: DecisionSample) -> Iterator[Alternative]:
    """Return what each of ``ALTERNATIVES`` would have chosen."""
    for policy in ALTERNATIVES:
        try:
            chosen = decide_again(sample, policy).chosen
        except ScorerFault:
            continue
        name = None if chosen is None else chosen.view.name
        yield Alternative(policy, name, name == sample.chosen)
