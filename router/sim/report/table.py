"""A comparison as a table for people."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from router.sim.report.comparison import Comparison, Provenance
from router.sim.runner import RunReport

COLUMNS = (
    "policy",
    "req/s",
    "hit",
    "TTFT mean",
    "p50",
    "p99",
    "TPOT mean",
    "p99",
    "E2E mean",
    "in SLO",
    "max/mean load",
    "wall",
)


def comparison_table(comparison: Comparison) -> RenderableType:
    """Lay out the runs, the saturation rates where there are some, and the provenance."""
    parts: list[RenderableType] = [_runs(comparison)]
    if comparison.saturation:
        parts.append(_saturation(comparison))
    parts.append(Text(provenance_text(comparison.provenance), style="dim"))
    return Group(*parts)


def cells(run: RunReport) -> list[str]:
    """Return one run as text, aligned with :data:`COLUMNS`."""
    s = run.summary
    return [
        s.policy,
        f"{s.requests_per_s:.1f}",
        f"{s.hit_ratio:.1%}",
        seconds(s.ttft_s.mean),
        seconds(s.ttft_s.p50),
        seconds(s.ttft_s.p99),
        seconds(s.tpot_s.mean),
        seconds(s.tpot_s.p99),
        seconds(s.e2e_s.mean),
        f"{s.slo_share:.1%}",
        f"{s.load_max_over_mean:.2f}",
        f"{s.wall_s:.1f} s",
    ]


def seconds(value: float) -> str:
    """Write a duration with a unit that suits it."""
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def provenance_text(provenance: Provenance) -> str:
    """Say in a few lines where the numbers come from."""
    p = provenance
    fleet = ", ".join(f"{count} x {name}" for name, count in p.hardware.items())
    events = "none" if p.observation.kv_event_delay_s is None else f"after {p.observation.kv_event_delay_s:g} s"
    return (
        f"{p.trace} ({p.trace_format}, {p.requests} requests, {p.block_tokens}-token blocks): {p.trace_provenance}\n"
        f"fleet: {fleet}; metrics every {p.observation.report_period_s:g} s, known after "
        f"{p.observation.report_delay_s:g} s; KV events: {events}\n"
        f"warm-up {p.warmup:.0%}, SLO: TTFT <= {p.slo.ttft_s:g} s and TPOT <= {p.slo.tpot_s:g} s; seed {p.seed}, "
        f"pointsman {p.version}"
    )


def _runs(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    for run in comparison.runs:
        table.add_row(*cells(run))
    return table


def _saturation(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title="saturation", title_justify="left")
    table.add_column("policy")
    table.add_column("sustained req/s", justify="right")
    table.add_column("rate scale", justify="right")
    for policy, found in comparison.saturation.items():
        table.add_row(policy, f"{found.requests_per_s:.1f}", f"{found.rate_scale:.2f}")
    return table
