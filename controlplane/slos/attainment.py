"""How far targets are met over windows, and how fast the error budget burns. Pure."""

from dataclasses import dataclass

WINDOWS_MINUTES = {"5m": 5, "1h": 60, "6h": 360, "3d": 4_320, "30d": 43_200}
"""The windows of multi-window burn-rate alerting, and the month that budgets are kept for."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Counts of one window."""

    minutes: int
    requests: int
    errors: int
    ttft_counted: int
    ttft_good: float
    tpot_counted: int
    tpot_good: float


@dataclass(frozen=True, slots=True)
class TargetAttainment:
    """One target in one window; None where nothing was counted."""

    attainment: float | None
    """Share of requests (0..1) within the target."""
    burn_rate: float | None
    """1 uses the error budget up exactly over its period; 2 in half of it."""
    met: bool | None


@dataclass(frozen=True, slots=True)
class WindowAttainment:
    """One window."""

    window: str
    requests: int
    errors: int
    ttft: TargetAttainment | None
    """None where there is no such target."""
    tpot: TargetAttainment | None
    goodput_per_s: float
    """Requests a second that met every target, at least: those that missed one are assumed not to overlap."""


def target_attainment(good: float, counted: int, percentile: float) -> TargetAttainment:
    """Measure one target of ``percentile`` percent (0 < percentile < 100)."""
    if counted == 0:
        return TargetAttainment(None, None, None)
    attainment = good / counted
    objective = percentile / 100
    return TargetAttainment(attainment, (1 - attainment) / (1 - objective), attainment >= objective)


def window_attainment(
    window: str, sums: Sums, ttft_percentile: float | None, tpot_percentile: float | None
) -> WindowAttainment:
    """Measure one window; a percentile of None is no target."""
    missed_ttft = sums.ttft_counted - sums.ttft_good if ttft_percentile is not None else 0.0
    missed_tpot = sums.tpot_counted - sums.tpot_good if tpot_percentile is not None else 0.0
    failed_twice = sums.errors if ttft_percentile is not None and tpot_percentile is not None else 0
    good = max(0.0, sums.requests - missed_ttft - missed_tpot + failed_twice)
    return WindowAttainment(
        window=window,
        requests=sums.requests,
        errors=sums.errors,
        ttft=None if ttft_percentile is None else target_attainment(sums.ttft_good, sums.ttft_counted, ttft_percentile),
        tpot=None if tpot_percentile is None else target_attainment(sums.tpot_good, sums.tpot_counted, tpot_percentile),
        goodput_per_s=good / (60 * sums.minutes) if sums.minutes else 0.0,
    )
