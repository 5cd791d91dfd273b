"""Least request: the instance with the fewest requests."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return BS per candidate."""
    return [c.view.bs + 1 for c in candidates]


LEAST_REQUEST = ScorerSpec(
    name="least_request",
    score=score,
    meaning="BS: requests there, with this one",
    source="Envoy's LEAST_REQUEST over all hosts; the exponents (0, 1) of the product",
)
