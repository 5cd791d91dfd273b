"""The heatmap of the past is what Plotly accepts, keeps every request, and marks what happened."""

import json
import re

import plotly.graph_objects as go
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboards.plots.score_heatmap import Column, Event, score_heatmap_figure

counts = st.dictionaries(st.integers(0, 120), st.integers(1, 900), max_size=8)


@settings(deadline=None)
@given(st.lists(counts, min_size=1, max_size=12))
def test_no_request_is_lost(columns: list[dict[int, int]]) -> None:
    figure = score_heatmap_figure([Column(10.0 * at, one) for at, one in enumerate(columns)])
    drawn = go.Figure(json.loads(re.sub(r'"token:[A-Za-z-]+"', '"#000000"', json.dumps(figure))))
    heat = drawn.data[0]
    assert sum(sum(row) for row in heat.customdata) == sum(sum(one.values()) for one in columns)
    assert len(heat.z) == len(heat.y)
    assert all(len(row) == len(columns) == len(heat.x) for row in heat.z)
    low, high = drawn.layout.yaxis.range
    assert all(low <= y <= high for y in heat.y)


def test_quantiles_and_events_are_marked() -> None:
    events = [Event(12.0, "policy.publish: default")]
    figure = score_heatmap_figure([Column(0.0, {40: 100}), Column(10.0, {48: 100})], events)
    texts = [annotation["text"] for annotation in figure["layout"]["annotations"]]
    assert [text.split()[0] for text in texts] == ["P50", "P95", "●"]
    assert figure["layout"]["annotations"][-1]["hovertext"] == "policy.publish: default"
    assert [shape["type"] for shape in figure["layout"]["shapes"]] == ["line", "line", "line"]


def test_an_empty_past_is_an_empty_picture() -> None:
    figure = score_heatmap_figure([Column(0.0, {})])
    assert figure["layout"]["shapes"] == []
    assert all(value is None for row in figure["data"][0]["z"] for value in row)
