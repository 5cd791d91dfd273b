"""Instances that take no new requests: by state, after failures, or because they failed this very request."""

from collections.abc import Sequence
from typing import Final

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.instance import ROUTABLE_STATES, InstanceState, InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation

_READY: Final = InstanceState.READY


def out_of_rotation(
    request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation
) -> Rejections:
    """Reject instances that are neither ready nor warming, or are ejected, tried before, or not the pinned one."""
    if request.pinned is not None:
        return _all_but(request.pinned, candidates, request.tried)
    tried = request.tried
    return {
        position: reason
        for position, candidate in enumerate(candidates)
        # Ready instances that nothing speaks against are told apart first: the look-ups behind cost ten times as much.
        if ((view := candidate.view).state is not _READY or view.ejected or tried)
        and (reason := _reason(view, tried)) is not None
    }


def _all_but(pinned: int, candidates: Sequence[Candidate], tried: frozenset[int]) -> Rejections:
    reasons = {
        position: _reason(candidate.view, tried) if candidate.view.slot == pinned else "pinned to another instance"
        for position, candidate in enumerate(candidates)
    }
    return {position: reason for position, reason in reasons.items() if reason is not None}


def _reason(view: InstanceView, tried: frozenset[int]) -> str | None:
    if view.state not in ROUTABLE_STATES:
        return f"state is {view.state}"
    if view.ejected:
        return "ejected after failures"
    if view.slot in tried:
        return "already tried for this request"
    return None
