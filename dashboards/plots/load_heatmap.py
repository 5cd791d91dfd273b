"""Requests at each instance over time: whether a policy spreads or piles up."""

from collections.abc import Sequence

from dashboards.plots.series import Figure

SCALE = ((0, "token:surface"), (0.3, "token:dataDeep"), (0.75, "token:data"), (1, "token:text"))
"""Share of the highest value -> colour. The page draws it as a scale of its own: Plotly's needs inline styles."""


def load_heatmap_figure(
    load: Sequence[Sequence[float]], *, start_s: float, span_s: float, highest: float | None = None
) -> Figure:
    """Draw a row an instance. What the colours mean is said beside the figure, in the words of :data:`SCALE`.

    :param load: mean requests at each instance in each span.
    :param highest: the value of the strongest colour, to compare figures; by default the highest there is.
    """
    top = max((max(row, default=0.0) for row in load), default=0.0) if highest is None else highest
    heat = {
        "type": "heatmap",
        "z": [list(row) for row in load],
        "x0": round(start_s + span_s / 2, 6),
        "dx": round(span_s, 6),
        "y": list(range(len(load))),
        "zmin": 0,
        "zmax": max(top, 1e-9),
        "colorscale": [list(stop) for stop in SCALE],
        "showscale": False,
        "ygap": 1,
        "hovertemplate": "instance %{y} at %{x:.0f} s: %{z:.1f} requests<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "time in the simulation (s)"}},
        "yaxis": {"title": {"text": "instance"}, "autorange": "reversed", "tick0": 0, "dtick": max(1, len(load) // 8)},
    }
    return {"data": [heat], "layout": layout}
