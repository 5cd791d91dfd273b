"""First token against output pace: what one policy gains in the one it may lose in the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.plots.series import Figure, marker_of


@dataclass(frozen=True, slots=True)
class Trade:
    """One policy: two times, both better when smaller."""

    name: str
    x: float
    y: float


def pareto_figure(trades: Sequence[Trade], *, x_title: str, y_title: str) -> Figure:
    """Draw a mark a policy, and a line through those that no other one beats in both."""
    front = pareto_front(trades)
    line: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": "beaten by none",
        "x": [trade.x for trade in front],
        "y": [trade.y for trade in front],
        "line": {"color": "token:faint", "width": 1, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
    }
    marks = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": trade.name,
            "x": [trade.x],
            "y": [trade.y],
            "text": [trade.name],
            "textposition": "top center",
            "textfont": {"color": "token:text", "size": 11},
            "cliponaxis": False,
            "marker": marker_of(position),
            "hovertemplate": f"{trade.name}<br>{x_title} %{{x:.3~g}} s<br>{y_title} %{{y:.3~g}} s<extra></extra>",
        }
        for position, trade in enumerate(trades)
    ]
    layout = {
        "xaxis": _axis(x_title, [trade.x for trade in trades]),
        "yaxis": _axis(y_title, [trade.y for trade in trades]),
        "margin": {"l": 64, "r": 12, "t": 20, "b": 44},
    }
    return {"data": [line, *marks], "layout": layout}


def pareto_front(trades: Sequence[Trade]) -> list[Trade]:
    """Return the trades that no other one beats in both times, by the first time."""
    front: list[Trade] = []
    for trade in sorted(trades, key=lambda one: (one.x, one.y)):
        if not front or trade.y < front[-1].y:
            front.append(trade)
    return front


def _axis(title: str, values: Sequence[float]) -> Figure:
    """Leave room around the marks, for their names."""
    low, high = min(values), max(values)
    room = (high - low) * 0.18 or high * 0.2 or 1.0
    bounds = [round(max(0.0, low - room), 6), round(high + room, 6)]
    return {"title": {"text": title}, "ticksuffix": " s", "range": bounds, "nticks": 6}
