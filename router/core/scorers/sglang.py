"""SGLang's cache-aware routing: by prefix while the load is even, by load when it is not."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the load per candidate, or the negative cached share where the prefix decides."""
    loads = [c.view.bs for c in candidates]
    high, low = max(loads), min(loads)
    uneven = high - low > SGLANG.param(policy, "balance_abs") and high > SGLANG.param(policy, "balance_rel") * low
    shares = [c.hit_tokens / request.prompt_tokens for c in candidates]
    if uneven or max(shares) <= SGLANG.param(policy, "cache_threshold"):
        return loads
    return [-share for share in shares]


SGLANG = ScorerSpec(
    name="sglang",
    score=score,
    meaning="requests there when load is uneven or nothing is cached, else the negative cached share",
    source="sgl-project/sglang, sgl-model-gateway cache_aware policy (0.3, 64, 1.5)",
    defaults={"cache_threshold": 0.3, "balance_abs": 64.0, "balance_rel": 1.5},
)
