"""The charts of a comparison, as plain Plotly figure objects (``{"data": [...], "layout": {...}}``).

Built by hand: the router does not depend on the plotting library, only a page that is opened later does.
"""

from typing import Any

from router.sim.report.comparison import Comparison
from router.sim.runner import RunReport

Figure = dict[str, Any]

PALETTE = ("#d98e04", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#8c6bb1", "#a6761d", "#1b9e77")
"""The first policy, the one to look at, is amber; the rest are told apart by colour-blind people too."""
DASHES = ("solid", "dash", "dot", "dashdot")


def comparison_figures(comparison: Comparison) -> dict[str, Figure]:
    """Return every chart by its title. Where there is a rate sweep, curves are drawn of the runs at its middle rate."""
    runs = runs_at_one_rate(comparison)
    figures = {
        "Time to first token": _cdf(runs, "ttft_curve_s", "time to first token (s)"),
        "Time per output token": _cdf(runs, "tpot_curve_s", "time per output token (s)"),
        "First token against output pace": _pareto(runs),
        "Cache hits": _hits(runs),
        "Requests at each instance over time": _heatmap(runs),
    }
    if len({run.rate_scale for run in comparison.runs}) > 1:
        figures["Rate sweep: mean time to first token"] = _sweep(comparison, "ttft_s", "mean time to first token (s)")
        figures["Rate sweep: mean time per output token"] = _sweep(
            comparison, "tpot_s", "mean time per output token (s)"
        )
    return figures


def runs_at_one_rate(comparison: Comparison) -> list[RunReport]:
    """Return the runs at the middle of the rates."""
    scales = sorted({run.rate_scale for run in comparison.runs})
    middle = scales[len(scales) // 2]
    return [run for run in comparison.runs if run.rate_scale == middle]


def _line(position: int) -> dict[str, Any]:
    return {"color": PALETTE[position % len(PALETTE)], "dash": DASHES[position // len(PALETTE) % len(DASHES)]}


def _cdf(runs: list[RunReport], curve: str, title: str) -> Figure:
    data = []
    for position, run in enumerate(runs):
        values: list[float] = getattr(run, curve)
        shares = [i / max(1, len(values) - 1) for i in range(len(values))]
        data.append(
            {"type": "scatter", "mode": "lines", "name": run.summary.policy, "x": values, "y": shares}
            | {"line": _line(position)}
        )
    axes = {"xaxis": {"title": {"text": title}, "type": "log"}, "yaxis": {"title": {"text": "share of requests"}}}
    return {"data": data, "layout": axes}


def _pareto(runs: list[RunReport]) -> Figure:
    data = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": run.summary.policy,
            "x": [run.summary.ttft_s.mean],
            "y": [run.summary.tpot_s.mean],
            "text": [run.summary.policy],
            "textposition": "top center",
            "marker": {"size": 11, "color": PALETTE[position % len(PALETTE)]},
        }
        for position, run in enumerate(runs)
    ]
    layout = {
        "xaxis": {"title": {"text": "mean time to first token (s)"}},
        "yaxis": {"title": {"text": "mean time per output token (s)"}},
        "showlegend": False,
    }
    return {"data": data, "layout": layout}


def _hits(runs: list[RunReport]) -> Figure:
    bar = {
        "type": "bar",
        "x": [run.summary.policy for run in runs],
        "y": [run.summary.hit_ratio for run in runs],
        "marker": {"color": [PALETTE[i % len(PALETTE)] for i in range(len(runs))]},
    }
    return {"data": [bar], "layout": {"yaxis": {"title": {"text": "share of prompt tokens"}, "tickformat": ".0%"}}}


def _heatmap(runs: list[RunReport]) -> Figure:
    """Show one policy at a time, with a menu of all."""
    highest = max((max(map(max, run.load)) for run in runs if run.load), default=1.0)
    data = [
        {
            "type": "heatmap",
            "z": run.load,
            "x0": run.load_start_s,
            "dx": run.load_span_s,
            "zmin": 0,
            "zmax": highest,
            "colorscale": "Viridis",
            "colorbar": {"title": {"text": "requests"}},
            "visible": position == 0,
        }
        for position, run in enumerate(runs)
    ]
    buttons = [
        {"label": run.summary.policy, "method": "restyle", "args": ["visible", [i == k for i in range(len(runs))]]}
        for k, run in enumerate(runs)
    ]
    layout = {
        "xaxis": {"title": {"text": "time (s)"}},
        "yaxis": {"title": {"text": "instance"}, "dtick": 1 if runs and len(runs[0].load) <= 32 else None},
        "updatemenus": [{"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.18, "yanchor": "top"}],
    }
    return {"data": data, "layout": layout}


def _sweep(comparison: Comparison, figure: str, title: str) -> Figure:
    policies = list(dict.fromkeys(run.summary.policy for run in comparison.runs))
    data = []
    for position, policy in enumerate(policies):
        runs = sorted((r for r in comparison.runs if r.summary.policy == policy), key=lambda r: r.rate_scale)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": policy,
                "x": [run.summary.requests_per_s for run in runs],
                "y": [getattr(run.summary, figure).mean for run in runs],
                "line": _line(position),
            }
        )
    axes = {"xaxis": {"title": {"text": "requests/s"}}, "yaxis": {"title": {"text": title}, "type": "log"}}
    return {"data": data, "layout": axes}
