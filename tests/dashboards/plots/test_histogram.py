"""Histogram figures are what they were, and what Plotly accepts."""

import json
import re
from pathlib import Path

import plotly.graph_objects as go
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboards.plots.histogram import compact, histogram_figure
from router.core.histogram import bucket_of

GOLDEN = Path(__file__).with_name("golden_histogram.json")


def test_the_figure_is_the_golden_one() -> None:
    counts = {bucket_of(value): count for value, count in ((800, 3), (1_500, 9), (40_000, 1))}
    figure = histogram_figure(counts, x_title="P-token × BS", marks={"P50": 1_500.0, "P95": 40_000.0, "P99": None})
    assert figure == json.loads(GOLDEN.read_text())


@settings(deadline=None)  # Plotly is slow the first time
@given(st.dictionaries(st.integers(0, 120), st.integers(1, 1_000), min_size=1), st.floats(1, 1e9))
def test_plotly_accepts_it_and_no_request_is_lost(counts: dict[int, int], median: float) -> None:
    figure = histogram_figure(counts, x_title="x", marks={"P50": median})
    text = re.sub(r'"token:[a-z-]+"', '"#000000"', json.dumps(figure))
    drawn = go.Figure(json.loads(text))
    assert sum(drawn.data[0].y) == sum(counts.values())
    low, high = drawn.layout.xaxis.range
    assert all(low <= x <= high for x in drawn.data[0].x)
    assert len(drawn.layout.xaxis.tickvals) == len(drawn.layout.xaxis.ticktext)


@given(st.dictionaries(st.integers(0, 120), st.integers(1, 10**9), min_size=1))
def test_labels_of_marks_lie_above_the_bars(counts: dict[int, int]) -> None:
    layout = histogram_figure(counts, x_title="x", marks={"P50": 10.0, "P95": 20.0, "P99": 30.0})["layout"]
    lowest_label = min(one["y"] for one in layout["annotations"]) - 0.12
    assert max(counts.values()) / layout["yaxis"]["range"][1] < lowest_label


def test_numbers_are_short() -> None:
    assert [compact(value) for value in (3, 999.9, 1_500, 61_400, 2e6)] == ["3", "1k", "1.5k", "61.4k", "2M"]
