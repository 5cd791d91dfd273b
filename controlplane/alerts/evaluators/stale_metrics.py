"""An engine that used to report its own numbers has stopped: the router knows its load from bookings only."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import InstanceSpan, Window
from router.core.instance import ROUTABLE_STATES

KIND = "stale_metrics"
_JUDGED_S = 20


class StaleMetricsLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a report is old."""

    age_s: Annotated[float, Meta(gt=0)] = 10.0
    """Age of the youngest report that any worker had."""


def stale_metrics(window: Window, limits: StaleMetricsLimits) -> Iterator[Finding]:
    """Find instances in rotation that have metrics, but whose newest report is old or missing."""
    reported = window.instances(_JUDGED_S)
    for fact in window.fleet:
        instance = reported.get(fact.id)
        if fact.state not in ROUTABLE_STATES or not fact.has_metrics or instance is None:
            continue
        if _is_old(instance, limits.age_s):
            age_s = instance.youngest_report_age_s
            what = "has not reported at all" if age_s is None else f"last reported {age_s:.0f} s ago"
            yield Finding(
                kind=KIND,
                severity=Severity.WARNING,
                labels={"instance": fact.name},
                summary=f"The engine of {fact.name} {what}",
                values={"report_age_s": None if age_s is None else round(age_s, 1)},
            )


def _is_old(instance: InstanceSpan, limit_s: float) -> bool:
    return instance.youngest_report_age_s is None or instance.youngest_report_age_s > limit_s
