"""Holders of a hot prefix, for requests of its class while it is mitigated."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation

_REASON = "hotspot mitigation for class "


def hot_holders(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
    """Reject the holders of the request's class; none of them when nothing else is left."""
    hot = situation.hot
    if hot is None or policy.hotspot is None:
        return {}
    out = {
        position: f"{_REASON}{hot.name}"
        for position, candidate in enumerate(candidates)
        if candidate.view.slot in hot.holders
    }
    return {} if len(out) == len(candidates) else out


def hot_class_of(reason: str) -> str | None:
    """Return the short name of the class for which an instance was out; None when it was out for something else."""
    return reason.removeprefix(_REASON) if reason.startswith(_REASON) else None
