"""First token against output pace: what one policy gains in the one it may lose in the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from dashboards.plots.series import LEGEND, Figure, Places, marker_of, placed
from dashboards.plots.time_axis import duration


@dataclass(frozen=True, slots=True)
class Trade:
    """One policy: two times, both better when smaller."""

    name: str
    x: float
    y: float


def pareto_figure(trades: Sequence[Trade], *, x_title: str, y_title: str, places: Places | None = None) -> Figure:
    """Draw a mark a policy, and a line through those that no other one beats in both."""
    front = pareto_front(trades)
    at = placed((trade.name for trade in trades), places)
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
            "mode": "markers",
            "name": trade.name,
            "x": [trade.x],
            "y": [trade.y],
            "marker": marker_of(at[trade.name], size=11),
            "customdata": [[duration(trade.x), duration(trade.y)]],
            "hovertemplate": f"{trade.name}<br>%{{customdata[0]}}, %{{customdata[1]}}<extra></extra>",
        }
        for trade in trades
    ]
    layout = {
        "xaxis": _axis(x_title, [trade.x for trade in trades]),
        "yaxis": _axis(y_title, [trade.y for trade in trades]),
        "margin": {"l": 72, "r": 12, "t": 12, "b": 44},
        "showlegend": True,
        "legend": LEGEND,
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
    """Leave room around the marks, and more where they are close: a small difference must not look like a large one."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.15, high * 0.1) or 1.0
    bounds = (max(0.0, low - room), high + room)
    step = _step((bounds[1] - bounds[0]) / 5)
    ticks = [round(step * number, 9) for number in range(ceil(bounds[0] / step), floor(bounds[1] / step) + 1)]
    return {
        "title": {"text": title},
        "range": [round(bound, 6) for bound in bounds],
        "tickvals": ticks,
        "ticktext": [duration(tick) for tick in ticks],
    }


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below ``least``."""
    decade = 10.0 ** floor(log10(least))
    return next(digit * decade for digit in (1, 2, 5, 10) if digit * decade >= least * 0.999)
