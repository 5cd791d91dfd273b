"""The histogram of one quantity, on a logarithmic axis, with marks at some of its quantiles."""

from collections.abc import Mapping
from math import floor, log10
from typing import Any

from router.core.histogram import BUCKETS_PER_OCTAVE, lower_edge

Figure = dict[str, Any]
_LABEL_SHARE = 0.12
"""Of the height of the figure, for the label of a mark."""


def histogram_figure(counts: Mapping[int, int], *, x_title: str, marks: Mapping[str, float | None]) -> Figure:
    """Draw a histogram with the buckets of :mod:`router.core.histogram`.

    :param counts: bucket -> count, not empty.
    :param marks: label -> value on the axis; None is left out.
    """
    buckets = sorted(counts)
    centers = [_position(2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE)) for bucket in buckets]
    bars = {
        "type": "bar",
        "x": centers,
        "y": [counts[bucket] for bucket in buckets],
        "width": round(log10(2) / BUCKETS_PER_OCTAVE * 0.9, 6),
        "marker": {"color": "token:data"},
        "customdata": [[compact(lower_edge(b)), compact(lower_edge(b + 1))] for b in buckets],
        "hovertemplate": "%{customdata[0]} to %{customdata[1]}: %{y}<extra></extra>",
    }
    known = {label: _position(value) for label, value in marks.items() if value is not None and value > 0}
    low, high = _position(lower_edge(buckets[0])), _position(lower_edge(buckets[-1] + 1))
    layout = {
        "xaxis": {"range": [low, high], "title": {"text": x_title}, **_decades(low, high)},
        "yaxis": {"range": [0, _top(max(counts.values()), len(known))], "title": {"text": "requests"}},
        "shapes": [_line(at) for at in known.values()],
        "annotations": [
            _label(f"{label} {compact(10**at)}", at, step, "left" if at < (low + high) / 2 else "right")
            for step, (label, at) in enumerate(known.items())
        ],
        "bargap": 0,
    }
    return {"data": [bars], "layout": layout}


def compact(value: float) -> str:
    """Return a number in three digits: 61.4k."""
    for size, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


def _top(highest: int, labels: int) -> float:
    """Return where the axis ends, so that the labels of marks lie above the bars."""
    return round(highest / (1 - _LABEL_SHARE * labels - 0.04), 3)


def _position(value: float) -> float:
    """Return where a value lies on the axis; rounded, so that figures are the same on every machine."""
    return round(log10(value), 6)


def _decades(low: float, high: float) -> Figure:
    digits = (1, 2, 5) if high - low < 2 else (1,)
    values = [digit * 10**decade for decade in range(floor(low), floor(high) + 1) for digit in digits]
    shown = [value for value in values if low <= log10(value) <= high]
    return {"tickvals": [_position(value) for value in shown], "ticktext": [compact(value) for value in shown]}


def _line(at: float) -> Figure:
    line = {"color": "token:text", "width": 1, "dash": "dash"}
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _label(text: str, at: float, step: int, anchor: str) -> Figure:
    return {
        "x": at,
        "yref": "paper",
        "y": 1 - _LABEL_SHARE * step,
        "xanchor": anchor,
        "yanchor": "top",
        "showarrow": False,
        "text": text,
        "font": {"size": 11, "color": "token:text"},
    }
