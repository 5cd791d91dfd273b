"""What a result looks like on the page: rows, charts and their table twins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.utils.safestring import SafeString

from dashboards.embedding import embeddable_json
from dashboards.plots.cdf import cdf_figure
from dashboards.plots.load_heatmap import load_heatmap_figure
from dashboards.plots.pareto import Trade, pareto_figure
from dashboards.plots.policy_comparison import relative_figure, shares_figure
from dashboards.plots.rate_sweep import rate_sweep_figure
from dashboards.plots.series import COLORS, Places
from dashboards.plots.time_axis import duration
from dashboards.templatetags.numbers import integer, percent, rate, seconds
from router.sim.metrics import RunSummary
from router.sim.report.comparison import Comparison
from router.sim.runner import RunReport

LOWER, HIGHER = min, max
_BEST: Mapping[str, Any] = {
    "hit_ratio": HIGHER,
    "ttft_mean": LOWER,
    "ttft_p50": LOWER,
    "ttft_p99": LOWER,
    "tpot_mean": LOWER,
    "tpot_p99": LOWER,
    "e2e_mean": LOWER,
    "slo_share": HIGHER,
    "goodput_per_s": HIGHER,
    "load_max_over_mean": LOWER,
    "cached_elsewhere_ratio": LOWER,
}
SWEPT: Mapping[str, tuple[str, bool]] = {
    "ttft_mean": ("mean time to first token (s)", True),
    "ttft_p99": ("p99 time to first token (s)", True),
    "tpot_mean": ("mean time per output token (s)", True),
    "tpot_p99": ("p99 time per output token (s)", True),
    "goodput_per_s": ("requests/s within the SLO", False),
    "hit_ratio": ("KV hit ratio", False),
}
"""What a rate sweep can show: title, and whether on a logarithmic axis."""
_QUANTILES = (10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class View:
    """What of a result is looked at; all of it stands in the address."""

    rate: float | None = None
    policy: str = ""
    figure: str = "ttft_mean"


@dataclass(frozen=True, slots=True)
class Line:
    """One policy at the rate that is looked at."""

    label: str
    series: int
    """1 to 10: which colour."""
    letter: str
    run: RunReport
    values: Mapping[str, float]
    best: frozenset[str]
    """Names of the values in which none is better."""
    saturation: float | None = None
    """Highest sustained requests a second, where a sweep found it."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A table that says what a chart shows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart."""

    key: str
    title: str
    note: str
    document: SafeString
    twin: Twin | None = None
    """None where the table of results says it."""
    wide: bool = False
    choice: str = ""
    """Name of what can be chosen for it: a policy, or a figure."""
    scale: str = ""
    """The value of the strongest colour, where colours mean values."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A result, or two of them beside each other."""

    lines: Sequence[Line]
    charts: Sequence[Chart]
    rates: Sequence[float]
    view: View
    policies: Sequence[str]

    @property
    def swept(self) -> bool:
        """Whether saturation is known."""
        return any(line.saturation is not None for line in self.lines)


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison under the letter that tells it apart (blank when it is alone)."""

    comparison: Comparison
    letter: str = ""

    def label(self, policy: str) -> str:
        """Return how a policy of this result is called on the page."""
        return f"{self.letter}: {policy}" if self.letter else policy


def shown(results: Sequence[Result], view: View) -> Shown:
    """Lay out one result, or two to compare."""
    rates = sorted({run.rate_scale for run in results[0].comparison.runs})
    wanted = rates[len(rates) // 2] if view.rate is None else min(rates, key=lambda one: abs(one - (view.rate or 0)))
    places = _places(results)
    lines = _lines(results, wanted, places)
    labels = [line.label for line in lines]
    seen = View(
        wanted,
        view.policy if view.policy in labels else labels[0],
        view.figure if view.figure in SWEPT else "ttft_mean",
    )
    charts = [*_distributions(results, lines, places), *_trades(lines, places), _load(lines, seen.policy)]
    if len(rates) > 1:
        charts.append(_sweep(results, seen.figure, places))
    return Shown(lines, charts, rates, seen, labels)


def values_of(run: RunSummary) -> dict[str, float]:
    """Return the figures of a run by short names."""
    return {
        "hit_ratio": run.hit_ratio,
        "ttft_mean": run.ttft_s.mean,
        "ttft_p50": run.ttft_s.p50,
        "ttft_p99": run.ttft_s.p99,
        "tpot_mean": run.tpot_s.mean,
        "tpot_p99": run.tpot_s.p99,
        "e2e_mean": run.e2e_s.mean,
        "slo_share": run.slo_share,
        "goodput_per_s": run.goodput_per_s,
        "load_max_over_mean": run.load_max_over_mean,
        "cached_elsewhere_ratio": run.cached_elsewhere_ratio,
    }


def _places(results: Sequence[Result]) -> dict[str, int]:
    """Give a policy the same colour in both results, and what tells them apart to the result."""
    policies = list(dict.fromkeys(run.summary.policy for result in results for run in result.comparison.runs))
    palettes = ceil(len(policies) / len(COLORS))
    return {
        result.label(policy): position + number * palettes * len(COLORS)
        for number, result in enumerate(results)
        for position, policy in enumerate(policies)
    }


def _lines(results: Sequence[Result], wanted: float, places: Places) -> list[Line]:
    found = [(result, run) for result in results for run in _nearest(result.comparison.runs, wanted)]
    values = [values_of(run.summary) for _, run in found]
    best = {name: choose(one[name] for one in values) for name, choose in _BEST.items()}
    return [
        Line(
            label=result.label(run.summary.policy),
            series=places[result.label(run.summary.policy)] % len(COLORS) + 1,
            letter=result.letter,
            run=run,
            values=own,
            best=frozenset(name for name, value in own.items() if len(found) > 1 and value == best[name]),
            saturation=_saturation(result.comparison, run.summary.policy),
        )
        for (result, run), own in zip(found, values, strict=True)
    ]


def _saturation(comparison: Comparison, policy: str) -> float | None:
    found = comparison.saturation.get(policy)
    return None if found is None else found.requests_per_s


def _nearest(runs: Iterable[RunReport], wanted: float) -> list[RunReport]:
    """Return the runs at the rate that is nearest to a wanted one."""
    known = list(runs)
    nearest = min((run.rate_scale for run in known), key=lambda one: abs(one - wanted))
    return [run for run in known if run.rate_scale == nearest]


def _distributions(results: Sequence[Result], lines: Sequence[Line], places: Places) -> list[Chart]:
    slo = results[0].comparison.provenance.slo
    ttft = {line.label: line.run.ttft_curve_s for line in lines}
    tpot = {line.label: line.run.tpot_curve_s for line in lines}
    return [
        _cdf_chart("ttft", "Time to first token", ttft, slo.ttft_s, places),
        _cdf_chart("tpot", "Time per output token", tpot, slo.tpot_s, places),
    ]


def _cdf_chart(key: str, title: str, curves: Mapping[str, list[float]], target: float, places: Places) -> Chart:
    figure = cdf_figure(curves, x_title=title.lower(), target=target, places=places)
    where = "dashed" if "shapes" in figure["layout"] else "further right"
    note = f"Left is better. SLO {duration(target)}: {where}."
    head = ("Policy", *(f"p{percentile}" for percentile in _QUANTILES), "longest")
    rows = [
        (label, *(seconds(values[round((len(values) - 1) * at / 100)]) for at in (*_QUANTILES, 100)))
        for label, values in curves.items()
        if values
    ]
    return Chart(key, title, note, embeddable_json(figure), Twin(head, rows))


def _trades(lines: Sequence[Line], places: Places) -> list[Chart]:
    trades = [Trade(line.label, line.values["ttft_mean"], line.values["tpot_mean"]) for line in lines]
    times = {
        line.label: {
            "TTFT mean": line.values["ttft_mean"],
            "TTFT p50": line.values["ttft_p50"],
            "TTFT p99": line.values["ttft_p99"],
            "TPOT mean": line.values["tpot_mean"],
            "TPOT p99": line.values["tpot_p99"],
            "E2E mean": line.values["e2e_mean"],
        }
        for line in lines
    }
    shares = {line.label: {"KV hit": line.values["hit_ratio"], "in SLO": line.values["slo_share"]} for line in lines}
    first = lines[0].label
    pareto = pareto_figure(trades, x_title="mean TTFT", y_title="mean TPOT", places=places)
    return [
        Chart("pareto", "First token against output pace", "Lower left is better.", embeddable_json(pareto)),
        Chart(
            "relative",
            f"Times against {first}",
            "Below 1 is faster.",
            embeddable_json(relative_figure(times, y_title=f"times {first}", places=places)),
        ),
        Chart(
            "shares", "Cache hits and SLO", "Higher is better.", embeddable_json(shares_figure(shares, places=places))
        ),
    ]


def _load(lines: Sequence[Line], policy: str) -> Chart:
    line = next(line for line in lines if line.label == policy)
    highest = max((max(row, default=0.0) for one in lines for row in one.run.load), default=0.0)
    figure = load_heatmap_figure(
        line.run.load, start_s=line.run.load_start_s, span_s=line.run.load_span_s, highest=highest
    )
    rows = [
        (str(number), rate(sum(row) / max(1, len(row))), rate(max(row, default=0.0)))
        for number, row in enumerate(line.run.load)
    ]
    note = "One scale for all policies: like rows are balance, a strong colour is a pile."
    twin = Twin(("Instance", "Mean requests", "Highest"), rows)
    return Chart(
        "load", "Requests at each instance", note, embeddable_json(figure), twin, choice="policy", scale=rate(highest)
    )


def _sweep(results: Sequence[Result], wanted: str, places: Places) -> Chart:
    title, logarithmic = SWEPT[wanted]
    series: dict[str, list[tuple[float, float]]] = {}
    saturation: dict[str, float] = {}
    for result in results:
        for run in result.comparison.runs:
            label = result.label(run.summary.policy)
            series.setdefault(label, []).append((run.summary.requests_per_s, values_of(run.summary)[wanted]))
        saturation |= {
            result.label(policy): found.requests_per_s for policy, found in result.comparison.saturation.items()
        }
    figure = rate_sweep_figure(series, y_title=title, logarithmic=logarithmic, saturation=saturation, places=places)
    rows = [(label, rate(x), _swept(wanted, y)) for label, points in series.items() for x, y in sorted(points)]
    note = "Bars at the top mark where a policy saturates." if saturation else "One point a run."
    twin = Twin(("Policy", "Requests/s", title), rows)
    return Chart("sweep", "Rate sweep", note, embeddable_json(figure), twin, wide=True, choice="figure")


def _swept(name: str, value: float) -> str:
    if name == "hit_ratio":
        return percent(value)
    return rate(value) if name == "goodput_per_s" else seconds(value)


def provenance_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """Return where the numbers come from, for people."""
    known = comparison.provenance
    fleet = ", ".join(f"{count} × {name}" for name, count in known.hardware.items())
    return [
        ("Trace", f"{known.trace}: {known.trace_provenance}"),
        ("Requests", f"{integer(known.requests)} at the first rate, the first {known.warmup:.0%} not measured"),
        ("Fleet", fleet),
        ("Hardware", "; ".join(f"{name}: {source}" for name, source in known.hardware_sources.items())),
        ("Router sees", f"metrics {known.observation.report_delay_s:g} s late, its own bookings at once"),
        ("Seed, version", f"{known.seed}, Pointsman {known.version}"),
    ]
