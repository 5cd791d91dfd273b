"""One instance carries much more than the others."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "load_variance"


class LoadVarianceLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When load is uneven."""

    max_over_mean: Annotated[float, Meta(gt=1)] = 2.5
    """Mean BS of the busiest instance over the mean of all."""
    least_bs: Annotated[float, Meta(ge=0)] = 8.0
    """Mean BS of the busiest instance below which nothing is judged."""


def load_variance(window: Window, limits: LoadVarianceLimits) -> Iterator[Finding]:
    """Find a busiest instance that is far above the mean of all that take requests."""
    racing = [instance for instance in window.instances().values() if instance.takes_requests]
    if len(racing) < 2:
        return
    busiest = max(racing, key=lambda instance: instance.bs_mean)
    mean = sum(instance.bs_mean for instance in racing) / len(racing)
    if busiest.bs_mean < limits.least_bs or busiest.bs_mean < limits.max_over_mean * mean:
        return
    yield Finding(
        kind=KIND,
        severity=Severity.WARNING,
        labels={},
        summary=f"{busiest.name} carries {busiest.bs_mean / mean:.1f} times the mean load "
        f"({busiest.bs_mean:.1f} of {mean:.1f} requests)",
        values={
            "busiest": busiest.name,
            "busiest_bs": round(busiest.bs_mean, 2),
            "mean_bs": round(mean, 2),
            "max_over_mean": round(busiest.bs_mean / mean, 3),
            "instances": len(racing),
        },
    )
