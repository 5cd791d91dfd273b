"""Policies side by side: times against the first one's, and shares."""

from collections.abc import Mapping

from dashboards.plots.series import LEGEND, Figure, Places, bar_of, marker_of, placed


def relative_figure(values: Mapping[str, Mapping[str, float]], *, y_title: str, places: Places | None = None) -> Figure:
    """Draw each figure of each policy over the same figure of the first policy; 1 is equal.

    :param values: policy -> figure -> value; figures that are 0 for the first policy are left out.
    """
    at = placed(values, places)
    reference = next(iter(values.values()), {})
    figures = [name for name, value in reference.items() if value > 0]
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": policy,
            "x": figures,
            "y": [round(own[name] / reference[name], 4) for name in figures],
            "customdata": [own[name] for name in figures],
            "marker": marker_of(at[policy], size=9),
            "hovertemplate": f"{policy}<br>%{{x}}: %{{y:.2f}} times, %{{customdata:.3~g}} s<extra></extra>",
        }
        for policy, own in values.items()
    ]
    one = {"color": "token:text", "width": 1, "dash": "dash"}
    layout = {
        "xaxis": {"type": "category"},
        "yaxis": {"title": {"text": y_title}, "type": "log", "ticksuffix": "×", "nticks": 6},
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": one}],
        "showlegend": True,
        "legend": LEGEND,
    }
    return {"data": data, "layout": layout}


def shares_figure(values: Mapping[str, Mapping[str, float]], *, places: Places | None = None) -> Figure:
    """Draw bars of shares: a group a figure, a bar a policy.

    :param values: policy -> figure -> share, 0 to 1.
    """
    at = placed(values, places)
    data = [
        {
            "type": "bar",
            "name": policy,
            "x": list(own),
            "y": list(own.values()),
            "marker": bar_of(at[policy]),
            "hovertemplate": f"{policy}<br>%{{x}}: %{{y:.1%}}<extra></extra>",
        }
        for policy, own in values.items()
    ]
    layout = {
        "barmode": "group",
        "xaxis": {"type": "category"},
        "yaxis": {"tickformat": ".0%", "range": [0, 1]},
        "showlegend": True,
        "legend": LEGEND,
    }
    return {"data": data, "layout": layout}
