"""Instances that take no new requests: by state, after failures, or because they failed this very request."""

from router.core.instance import ROUTABLE_STATES, InstanceView
from router.core.request import Request


def in_rotation(request: Request, view: InstanceView) -> str | None:
    """Keep instances that are ready or warming, not ejected and not tried before."""
    if view.state not in ROUTABLE_STATES:
        return f"state is {view.state}"
    if view.ejected:
        return "ejected after failures"
    if view.slot in request.tried:
        return "already tried for this request"
    return None
