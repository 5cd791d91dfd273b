"""What routers have booked at an instance and what its engine reports do not agree."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "booking_drift"


class BookingDriftLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When two counts drift."""

    requests: Annotated[float, Meta(gt=0)] = 8.0
    """Difference of the means over a minute, in requests."""
    share: Annotated[float, Meta(gt=0)] = 0.5
    """Difference over the larger of the two."""


def booking_drift(window: Window, limits: BookingDriftLimits) -> Iterator[Finding]:
    """Find instances whose engine counts many more, or many fewer, requests than routers booked."""
    for instance in window.instances().values():
        if instance.reported_mean is None:
            continue
        drift = instance.reported_mean - instance.own_mean
        larger = max(instance.reported_mean, instance.own_mean)
        if abs(drift) < limits.requests or abs(drift) < limits.share * larger:
            continue
        more = "more" if drift > 0 else "fewer"
        yield Finding(
            kind=KIND,
            severity=Severity.WARNING,
            labels={"instance": instance.name},
            summary=f"The engine of {instance.name} reports {abs(drift):.0f} requests {more} than routers booked there",
            values={
                "reported_requests": round(instance.reported_mean, 2),
                "booked_requests": round(instance.own_mean, 2),
                "drift_requests": round(drift, 2),
            },
        )
