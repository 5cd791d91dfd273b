"""Cumulative distributions: which share of the requests was served within which time."""

from collections.abc import Mapping, Sequence

from dashboards.plots.series import LEGEND, Figure, Places, line_of, placed
from dashboards.plots.time_axis import logarithmic_time_axis

_NEAR = 3.0
"""A target further away than this many times the longest time would squeeze the curves."""


def cdf_figure(
    curves: Mapping[str, Sequence[float]], *, x_title: str, target: float | None = None, places: Places | None = None
) -> Figure:
    """Draw a curve a policy on a logarithmic time axis.

    :param curves: name -> quantiles at even steps from 0 to 1, in seconds.
    :param target: the SLO, drawn as a line where the curves come near it.
    """
    times = [value for values in curves.values() for value in values if value > 0] or [1.0]
    low, high = min(times), max(times)
    near = target is not None and target <= high * _NEAR
    at = placed(curves, places)
    data = [_curve(at[name], name, values) for name, values in curves.items()]
    layout: Figure = {
        "xaxis": logarithmic_time_axis(x_title, low, max(high, target or 0) if near else high),
        "yaxis": {"title": {"text": "share of requests"}, "tickformat": ".0%", "range": [0, 1.01]},
        "showlegend": True,
        "legend": LEGEND,
    }
    if target is not None and near:
        layout |= {"shapes": [_target_line(target)]}
    return {"data": data, "layout": layout}


def _curve(position: int, name: str, values: Sequence[float]) -> Figure:
    steps = max(1, len(values) - 1)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(values),
        "y": [round(step / steps, 4) for step in range(len(values))],
        "line": line_of(position),
        "hovertemplate": f"{name}<br>%{{y:.1%}} within %{{x:.3~g}} s<extra></extra>",
    }


def _target_line(target: float) -> Figure:
    line = {"color": "token:text", "width": 1, "dash": "dash"}
    return {"type": "line", "x0": target, "x1": target, "yref": "paper", "y0": 0, "y1": 1, "line": line}
