"""The hotspots page is what its figures say: nothing in it is typed by hand."""

import msgspec

from tests.benchmarks.hotspots.__main__ import DOCS, live_figures
from tests.benchmarks.hotspots.measure import Results
from tests.benchmarks.hotspots.render import page


def test_the_page_is_rendered_from_the_figures_kept() -> None:
    measured = msgspec.json.decode((DOCS / "hotspots.json").read_bytes(), type=Results)
    assert (DOCS / "hotspots.md").read_text(encoding="utf-8") == page(measured, live_figures())
