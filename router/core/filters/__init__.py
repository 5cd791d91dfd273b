"""Filters: one file each, applied in order before anything is scored.

A filter looks at the whole set of candidates at once and names those that are out, with the reason. It is pure, and
cheap where nothing is to be filtered. :data:`FILTERS` run at every decision and look at one instance alone.
:data:`TERM_FILTERS` belong to the optional terms of a policy, run only where it has one of them, and may compare.
"""

from router.core.filters.cold_start import cold_enough
from router.core.filters.hotspot import hot_holders
from router.core.filters.model import not_serving
from router.core.filters.p_token_cap import above_p_token_cap
from router.core.filters.rotation import out_of_rotation
from router.core.filters.spec import Filter, Rejections
from router.core.filters.spot import refused_spot

FILTERS: tuple[Filter, ...] = (out_of_rotation, not_serving)
TERM_FILTERS: tuple[Filter, ...] = (refused_spot, hot_holders, cold_enough, above_p_token_cap)

__all__ = ["FILTERS", "TERM_FILTERS", "Filter", "Rejections"]
