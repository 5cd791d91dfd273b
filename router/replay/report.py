"""The report of a replay, as one JSON object or as a table. The keys are those of the simulator's runs."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from router.replay.tally import Tally


class Distribution(msgspec.Struct, frozen=True):
    """Mean and quantiles in seconds; all None when nothing was measured."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None

    @classmethod
    def of(cls, values: Sequence[float], scale: float) -> "Distribution":
        """Summarise durations, each multiplied by ``scale``."""
        if not len(values):
            return cls(None, None, None, None)
        column = np.asarray(values) * scale
        p50, p90, p99 = (float(value) for value in np.percentile(column, (50, 90, 99)))
        return cls(float(column.mean()), p50, p90, p99)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay measured.

    ``requests`` ended well; ``errors`` counts the others, ``errors_by_kind`` tells them apart. ``hit_ratio`` is
    reported cached tokens over prompt tokens. ``load_max_over_mean`` compares the requests of the instances. Durations
    are in model time when ``time_scale`` is not 1.
    """

    policy: str | None
    requests: int
    hit_ratio: float | None
    ttft_s: Distribution
    tpot_s: Distribution
    e2e_s: Distribution
    load_max_over_mean: float | None
    wall_s: float
    errors: int
    errors_by_kind: dict[str, int]
    error_examples: dict[str, str]
    """What the first error of a kind said, where it said anything."""
    sent: int
    late: int
    late_mean_s: float
    behind_max_s: float
    requests_per_s: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    instances: dict[str, int]
    time_scale: float
    interrupted: bool


def report_of(tally: Tally, wall_s: float, *, time_scale: float = 1.0, interrupted: bool = False) -> Report:
    """Summarise a tally after ``wall_s`` seconds of the wall clock."""
    counts = list(tally.instances.values())
    return Report(
        policy=tally.policies.most_common(1)[0][0] if tally.policies else None,
        requests=tally.done,
        hit_ratio=tally.cached_tokens / tally.prompt_tokens if tally.prompt_tokens else None,
        ttft_s=Distribution.of(tally.ttft_s, time_scale),
        tpot_s=Distribution.of(tally.tpot_s, time_scale),
        e2e_s=Distribution.of(tally.e2e_s, time_scale),
        load_max_over_mean=max(counts) * len(counts) / sum(counts) if counts else None,
        wall_s=wall_s,
        errors=tally.failed,
        errors_by_kind=dict(sorted(tally.errors.items())),
        error_examples=dict(sorted(tally.error_examples.items())),
        sent=tally.sent,
        late=tally.late,
        late_mean_s=tally.late_s / tally.late if tally.late else 0.0,
        behind_max_s=tally.behind_s,
        requests_per_s=tally.sent / wall_s if wall_s > 0 else 0.0,
        prompt_tokens=tally.prompt_tokens,
        cached_tokens=tally.cached_tokens,
        completion_tokens=tally.completion_tokens,
        instances=dict(sorted(tally.instances.items())),
        time_scale=time_scale,
        interrupted=interrupted,
    )


def print_table(report: Report, console: Console) -> None:
    """Show a report to a person."""
    times = Table(title=_title(report), title_justify="left")
    for heading in ("", "mean", "p50", "p90", "p99"):
        times.add_column(heading, justify="left" if not heading else "right")
    for name, values in (("TTFT", report.ttft_s), ("TPOT", report.tpot_s), ("end to end", report.e2e_s)):
        times.add_row(name, *(_duration(value) for value in (values.mean, values.p50, values.p90, values.p99)))
    console.print(times)
    for line in _lines(report):
        console.print(line, highlight=False)


def _title(report: Report) -> str:
    clock = "" if report.time_scale == 1 else f", in model time ({report.time_scale:g} x the wall clock)"
    stopped = ", interrupted" if report.interrupted else ""
    return f"{report.requests} requests in {report.wall_s:.1f} s{stopped}{clock}"


def _lines(report: Report) -> list[str]:
    hit = "unknown" if report.hit_ratio is None else f"{report.hit_ratio:.1%}"
    lines = [
        f"hit ratio {hit}: {report.cached_tokens:,} of {report.prompt_tokens:,} prompt tokens were cached",
        f"sent {report.sent} requests at {report.requests_per_s:.2f}/s, {report.completion_tokens:,} tokens generated",
    ]
    if report.late:
        lines.append(f"{report.late} arrivals were late, {report.late_mean_s:.2f} s on average (--concurrency)")
    if report.instances:
        shares = ", ".join(f"{name} {count}" for name, count in report.instances.items())
        lines.append(f"instances (max/mean {report.load_max_over_mean:.2f}): {shares}")
    failures = ", ".join(f"{kind} {count}" for kind, count in report.errors_by_kind.items())
    lines.append(f"errors: {failures or 'none'}")
    return lines + [f"{kind}: {text}" for kind, text in report.error_examples.items()]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def as_json(report: Report) -> Any:
    """Return the report as plain values, ready to be serialised."""
    return msgspec.to_builtins(report)
