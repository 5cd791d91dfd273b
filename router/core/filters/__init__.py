"""Filters: one file each, applied in the order of :data:`FILTERS` before anything is scored.

A filter looks at the whole set of candidates at once and names those that are out, with the reason. It is pure, and
cheap where nothing is to be filtered: it runs at every decision. First come the filters that look at one instance
alone, then (later ones) those that compare.
"""

from router.core.filters.model import not_serving
from router.core.filters.rotation import out_of_rotation
from router.core.filters.spec import Filter, Rejections

FILTERS: tuple[Filter, ...] = (out_of_rotation, not_serving)

__all__ = ["FILTERS", "Filter", "Rejections"]
