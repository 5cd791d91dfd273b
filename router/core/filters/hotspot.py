"""Holders of a hot prefix, for requests of its class while it is mitigated."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation


def hot_holders(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
    """Reject the holders of the request's class; none of them when nothing else is left."""
    hot = situation.hot
    if hot is None or policy.hotspot is None:
        return {}
    out = {
        position: f"hotspot mitigation for class {hot.name}"
        for position, candidate in enumerate(candidates)
        if candidate.view.slot in hot.holders
    }
    return {} if len(out) == len(candidates) else out
