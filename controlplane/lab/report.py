"""A result to keep: JSON, or one self-contained page. Both are made when somebody asks; the rows are the truth."""

from router.sim.report.comparison import Comparison
from router.sim.report.html import bundled_plotly_js, comparison_html
from router.sim.report.json_text import comparison_json


def as_json(comparison: Comparison) -> bytes:
    """Return the figures as `pointsman simulate --output json` prints them."""
    return comparison_json(comparison)


def as_html(comparison: Comparison) -> str:
    """Return a page that draws its charts without the network."""
    return comparison_html(comparison, bundled_plotly_js())
