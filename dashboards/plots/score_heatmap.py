"""The distribution of P-token x BS over time: a column a span, shade by the root of the count, quantiles, events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import log10, sqrt
from typing import Any, NamedTuple

from dashboards.plots.histogram import compact
from router.core.histogram import BUCKETS_PER_OCTAVE, Counts, lower_edge, merge, quantile

Figure = dict[str, Any]
QUANTILES = (("P50", 0.5, "dot"), ("P95", 0.95, "dash"))
LEAST_BUCKETS = 14


class Column(NamedTuple):
    """What was counted in the span that begins at ``start_s`` (Unix seconds)."""

    start_s: float
    counts: Counts


class Event(NamedTuple):
    """Something that happened, to be marked."""

    at_s: float
    text: str


def score_heatmap_figure(columns: Sequence[Column], events: Sequence[Event] = ()) -> Figure:
    """Draw the columns, which are equally wide and in order; at least one."""
    total = merge(column.counts for column in columns)
    low, high = _visible(total)
    marks = [(name, quantile(total, rank), dash) for name, rank, dash in QUANTILES]
    known = [(name, value, dash) for name, value, dash in marks if value is not None]
    layout = {
        "xaxis": {"type": "date", "showgrid": False},
        "yaxis": {"range": [low, high], "showgrid": False, "title": {"text": "P-token × BS"}, **_decades(low, high)},
        "shapes": [_across(value, dash) for _, value, dash in known] + [_upright(event) for event in events],
        "annotations": [_name(name, value) for name, value, _ in known] + [_flag(event) for event in events],
    }
    return {"data": [_cells(columns, low, high)], "layout": layout}


def _cells(columns: Sequence[Column], low: int, high: int) -> Figure:
    buckets = range(low, high)
    return {
        "type": "heatmap",
        "x": [_moment(column.start_s) for column in columns],
        "y": [bucket + 0.5 for bucket in buckets],
        "z": [[_shade(column.counts, bucket) for column in columns] for bucket in buckets],
        "customdata": [[column.counts.get(bucket, 0) for column in columns] for bucket in buckets],
        "text": [[_span(bucket)] * len(columns) for bucket in buckets],
        "hovertemplate": "%{x} · %{text}<br>%{customdata} requests<extra></extra>",
        "hoverongaps": False,
        "showscale": False,
        "zmin": 0,
        "colorscale": [[0, "token:dataDeep"], [0.55, "token:data"], [1, "token:text"]],
        "xgap": 1,
        "ygap": 1,
    }


def _visible(total: Mapping[int, int]) -> tuple[int, int]:
    low, high = (min(total), max(total) + 1) if total else (24, 24 + LEAST_BUCKETS)
    missing = max(0, LEAST_BUCKETS - (high - low))
    low = max(0, low - missing // 2 - 1)
    return low, max(high + 1, low + LEAST_BUCKETS)


def _shade(counts: Counts, bucket: int) -> float | None:
    count = counts.get(bucket)
    return round(sqrt(count), 3) if count else None


def _span(bucket: int) -> str:
    return f"{compact(lower_edge(bucket))} to {compact(lower_edge(bucket + 1))}"


def _position(value: float) -> float:
    return round(log10(max(1.0, value)) / log10(2) * BUCKETS_PER_OCTAVE, 4)


def _decades(low: int, high: int) -> Figure:
    digits = (1, 3) if high - low < 20 else (1,)
    values = [digit * 10**decade for decade in range(16) for digit in digits]
    shown = [value for value in values if low <= _position(value) <= high]
    return {"tickvals": [_position(value) for value in shown], "ticktext": [compact(value) for value in shown]}


def _across(value: float, dash: str) -> Figure:
    y = _position(value)
    line = {"color": "token:text", "width": 1, "dash": dash}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _upright(event: Event) -> Figure:
    x = _moment(event.at_s)
    line = {"color": "token:chosen", "width": 1}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _name(name: str, value: float) -> Figure:
    return {
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "y": _position(value),
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"{name} {compact(value)}",
        "font": {"size": 11, "color": "token:text"},
        "bgcolor": "token:surface",
        "opacity": 0.85,
    }


def _flag(event: Event) -> Figure:
    return {
        "x": _moment(event.at_s),
        "yref": "paper",
        "y": 1,
        "yanchor": "top",
        "xanchor": "left",
        "showarrow": False,
        "text": "●",
        "hovertext": event.text,
        "captureevents": True,
        "font": {"size": 11, "color": "token:chosen"},
    }


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
