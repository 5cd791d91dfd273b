"""Round robin: the instance that was chosen longest ago."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the decision number at which each candidate was last chosen."""
    return [c.view.last_chosen for c in candidates]


ROUND_ROBIN = ScorerSpec(
    name="round_robin",
    score=score,
    meaning="the number of the decision that last chose this instance",
    source="the classic rule; the default of most HTTP balancers",
)
