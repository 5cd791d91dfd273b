"""Uniformly random choice."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return a random number in [0, 1) per candidate."""
    return [rng.random() for _ in candidates]


RANDOM = ScorerSpec(name="random", score=score, meaning="a random number in [0, 1)", source="the classic rule")
