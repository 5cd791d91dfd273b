"""Counting requests against targets: pure functions over histograms."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2

from controlplane.telemetry.rollup import WorkerRollup
from router.core.histogram import BUCKETS_PER_OCTAVE, merge

_US = 1e6


@dataclass(frozen=True, slots=True)
class Targets:
    """Durations in seconds; None is no target."""

    ttft_s: float | None
    tpot_s: float | None


@dataclass(frozen=True, slots=True)
class Count:
    """What one span of time holds of one workload."""

    requests: int
    errors: int
    ttft_counted: int
    ttft_good: float
    tpot_counted: int
    tpot_good: float


def count(workload: str, rollups: Iterable[WorkerRollup], targets: Targets) -> Count:
    """Count the requests of a workload in some roll-ups against targets; failures count as bad."""
    rows = [row for rollup in rollups if (row := rollup.workloads.get(workload)) is not None]
    errors = sum(row.errors for row in rows)
    ttft, tpot = merge(row.ttft_us for row in rows), merge(row.tpot_us for row in rows)
    return Count(
        requests=sum(row.requests for row in rows),
        errors=errors,
        ttft_counted=sum(ttft.values()) + errors if targets.ttft_s else 0,
        ttft_good=at_most(ttft, targets.ttft_s * _US) if targets.ttft_s else 0.0,
        tpot_counted=sum(tpot.values()) + errors if targets.tpot_s else 0,
        tpot_good=at_most(tpot, targets.tpot_s * _US) if targets.tpot_s else 0.0,
    )


def at_most(counts: Mapping[int, int], value: float) -> float:
    """Return how many values of a histogram are at most ``value`` (> 0).

    The bucket that ``value`` falls into is split on the log scale, as quantiles are.
    """
    position = max(0.0, log2(value) * BUCKETS_PER_OCTAVE)
    whole = int(position)
    below = sum(n for bucket, n in counts.items() if bucket < whole)
    return below + counts.get(whole, 0) * (position - whole)
