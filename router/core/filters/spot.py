"""Spot instances, for policies that refuse them."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation


def refused_spot(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
    """Reject instances that may be preempted, when the policy says so."""
    if policy.spot is None or not policy.spot.refuse:
        return {}
    return {position: "spot instance" for position, c in enumerate(candidates) if c.view.spot}
