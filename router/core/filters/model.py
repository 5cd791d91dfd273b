"""Instances that do not serve the model that was asked for."""

from router.core.instance import InstanceView
from router.core.request import Request


def serves_model(request: Request, view: InstanceView) -> str | None:
    """Keep instances that list the model (or the adapter), and those that answer to any name."""
    if not view.models or (request.adapter or request.model) in view.models:
        return None
    return f"does not serve {request.adapter or request.model}"
