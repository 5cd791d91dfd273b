"""Filters: one file each, applied in the order of :data:`FILTERS` before anything is scored.

A filter says of one candidate why it is out, or None to keep it. It is pure, and must be cheap: it runs for every
instance at every decision.
"""

from router.core.filters.model import serves_model
from router.core.filters.rotation import in_rotation
from router.core.filters.spec import Filter

FILTERS: tuple[Filter, ...] = (in_rotation, serves_model)
