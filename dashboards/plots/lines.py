"""Lines over time, with gaps where nothing was counted, and a target."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Figure = dict[str, Any]
Points = Sequence[tuple[float, float | None]]
"""(Unix seconds, value); None is a gap."""
COLORS = ("token:data", "token:ok", "token:muted")


def lines_figure(series: Mapping[str, Points], *, y_title: str, targets: Mapping[str, float] | None = None) -> Figure:
    """Draw lines, at most as many as there are colours; a series is told apart by its dash as well.

    :param targets: label -> value, drawn across.
    """
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "marker": {"size": 4},
            "name": name,
            "x": [_moment(at_s) for at_s, _ in points],
            "y": [value for _, value in points],
            "connectgaps": False,
            "line": {"color": color, "width": 1.5, "dash": dash},
            "hovertemplate": f"%{{x}}<br>{name} %{{y:.4~g}}<extra></extra>",
        }
        for (name, points), color, dash in zip(series.items(), COLORS, ("solid", "dash", "dot"), strict=False)
    ]
    known = _by_value(targets or {})
    layout = {
        "xaxis": {"type": "date", "title": {"text": "UTC"}},
        "yaxis": {"title": {"text": y_title}},
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "y": 1.15, "x": 0},
        "shapes": [_across(value) for value in known],
        "annotations": [_label(f"{label} {value:.4g}", value) for value, label in known.items()],
    }
    return {"data": data, "layout": layout}


def bars_figure(series: Mapping[str, Points], *, y_title: str) -> Figure:
    """Draw stacked bars over time."""
    data = [
        {
            "type": "bar",
            "name": name,
            "x": [_moment(at_s) for at_s, _ in points],
            "y": [value for _, value in points],
            "marker": {"color": color},
            "hovertemplate": f"%{{x}}<br>{name} %{{y:,}}<extra></extra>",
        }
        for (name, points), color in zip(series.items(), COLORS, strict=False)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"type": "date", "title": {"text": "UTC"}},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero"},
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "y": 1.12, "x": 0},
    }
    return {"data": data, "layout": layout}


def _by_value(targets: Mapping[str, float]) -> Mapping[float, str]:
    """Give each value one label, also when several targets share it."""
    found: dict[float, str] = {}
    for label, value in targets.items():
        found[value] = f"{found[value]}, {label}" if value in found else label
    return found


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _across(value: float) -> Figure:
    line = {"color": "token:text", "width": 1, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value, "line": line}


def _label(text: str, value: float) -> Figure:
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": value,
        "yanchor": "bottom",
        "showarrow": False,
        "text": text,
        "font": {"size": 11, "color": "token:text"},
    }
