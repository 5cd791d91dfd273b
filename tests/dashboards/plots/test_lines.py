"""Line and bar figures are what Plotly accepts, and keep every point."""

import json
import re
from typing import Any

import plotly.graph_objects as go

from dashboards.plots.lines import bars_figure, lines_figure

POINTS = [(0.0, 99.0), (60.0, None), (120.0, 97.5)]


def drawn(figure: dict[str, Any]) -> go.Figure:
    return go.Figure(json.loads(re.sub(r'"token:[a-z-]+"', '"#000000"', json.dumps(figure))))


def test_lines_keep_gaps_and_show_targets() -> None:
    figure = drawn(lines_figure({"TTFT": POINTS, "TPOT": POINTS}, y_title="%", targets={"objective": 95.0}))
    assert [trace.name for trace in figure.data] == ["TTFT", "TPOT"]
    assert list(figure.data[0].y) == [99.0, None, 97.5]
    assert list(figure.data[0].x) == ["1970-01-01 00:00:00", "1970-01-01 00:01:00", "1970-01-01 00:02:00"]
    assert figure.data[0].line.dash != figure.data[1].line.dash, "colour is never the only difference"
    assert figure.layout.shapes[0].y0 == 95.0
    assert figure.layout.annotations[0].text == "objective 95"
    assert figure.layout.showlegend


def test_one_line_needs_no_legend() -> None:
    assert not lines_figure({"TTFT": POINTS}, y_title="%")["layout"]["showlegend"]


def test_bars_are_stacked() -> None:
    figure = drawn(bars_figure({"prompt": [(0.0, 5.0)], "output": [(0.0, 2.0)]}, y_title="tokens"))
    assert figure.layout.barmode == "stack"
    assert [list(trace.y) for trace in figure.data] == [[5.0], [2.0]]
