"""Marginal delay: the prefill tokens that a request waits for, and those that it makes everyone there wait for."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``Q + new * BS`` per candidate."""
    return [c.view.queued_prefill_tokens + c.new_tokens * c.bs for c in candidates]


MARGINAL_DELAY = ScorerSpec(
    name="marginal_delay",
    score=score,
    meaning="queued prefill tokens plus new ones times BS: the delay suffered and caused, in prefill tokens",
    source="ours: the product with the exponent c = 0 on the queued part",
)
