"""One figure of each policy at several rates."""

from collections.abc import Mapping, Sequence

from dashboards.plots.series import LEGEND, Figure, Places, line_of, marker_of, placed


def rate_sweep_figure(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    y_title: str,
    logarithmic: bool = False,
    saturation: Mapping[str, float] | None = None,
    places: Places | None = None,
) -> Figure:
    """Draw a line a policy.

    :param series: name -> (requests a second, value).
    :param saturation: name -> highest sustained requests a second, drawn as a line down from above.
    """
    at = placed(series, places)
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [x for x, _ in sorted(points)],
            "y": [y for _, y in sorted(points)],
            "line": line_of(at[name]),
            "marker": marker_of(at[name], size=7),
            "hovertemplate": f"{name}<br>%{{x:.3~g}} requests/s: %{{y:.3~g}}<extra></extra>",
        }
        for name, points in series.items()
    ]
    layout = {
        "xaxis": {"title": {"text": "requests/s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y_title}} | ({"type": "log"} if logarithmic else {"rangemode": "tozero"}),
        "showlegend": True,
        "legend": LEGEND,
        "shapes": [_mark(x, line_of(at[name])) for name, x in (saturation or {}).items() if name in at],
    }
    return {"data": data, "layout": layout}


def _mark(at: float, line: Figure) -> Figure:
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0.9, "y1": 1, "line": line | {"width": 3}}
