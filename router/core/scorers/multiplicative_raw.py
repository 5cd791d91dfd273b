"""The product without queued prefill and without the request itself: the naive form, kept to show why not."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``new * (BS - 1)`` per candidate: every idle instance ties at 0, whatever it has cached."""
    return [c.new_tokens * c.view.bs for c in candidates]


MULTIPLICATIVE_RAW = ScorerSpec(
    name="multiplicative_raw",
    score=score,
    meaning="new prefill tokens times the requests there, without this one and without queued prefill",
    source="ours: how the product must not be written",
)
