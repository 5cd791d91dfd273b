"""An error budget burns too fast: multi-window, multi-burn-rate alerting.

A rate of 1 uses the budget up exactly over its period. Each pair is a long window, which says that it matters, and a
short one, which says that it still goes on (Beyer et al., "The Site Reliability Workbook", chapter 5).
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import SloBurn, Window

KIND = "slo_burn"


class SloBurnLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rates above which a budget burns too fast."""

    fast_rate: Annotated[float, Meta(gt=1)] = 14.4
    """Over an hour and the last five minutes: two days of budget an hour."""
    slow_rate: Annotated[float, Meta(gt=1)] = 6.0
    """Over six hours and the last hour."""
    least_requests: Annotated[int, Meta(ge=1)] = 50
    """Requests in the short window, below which nothing is judged."""


def slo_burn(window: Window, limits: SloBurnLimits) -> Iterator[Finding]:
    """Find targets whose budget burns fast, or slowly for long."""
    for burn in window.burns:
        if burn.requests < limits.least_requests:
            continue
        if _above(burn, limits.fast_rate, "1h", "5m"):
            yield _finding(burn, Severity.CRITICAL, "1h", "5m")
        elif _above(burn, limits.slow_rate, "6h", "1h"):
            yield _finding(burn, Severity.WARNING, "6h", "1h")


def _above(burn: SloBurn, limit: float, *windows: str) -> bool:
    return all((rate := burn.rates.get(name)) is not None and rate >= limit for name in windows)


def _finding(burn: SloBurn, severity: Severity, long: str, short: str) -> Finding:
    return Finding(
        kind=KIND,
        severity=severity,
        labels={"workload": burn.workload, "target": burn.target},
        summary=f"The {burn.target.upper()} budget of {burn.workload} burns {burn.rates[long]:.0f} times too fast over "
        f"{long}, {burn.rates[short]:.0f} times over {short}",
        values={f"burn_rate_{name}": round(rate, 2) for name, rate in burn.rates.items()},
    )
