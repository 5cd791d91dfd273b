"""Instances that do not serve the model that was asked for."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation


def not_serving(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
    """Reject instances that list names, but not that of the model (or the adapter); without a list any name is fine."""
    wanted = request.adapter or request.model
    return {
        position: f"does not serve {wanted}"
        for position, candidate in enumerate(candidates)
        if (models := candidate.view.models) and wanted not in models
    }
