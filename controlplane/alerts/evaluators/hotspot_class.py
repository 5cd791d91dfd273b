"""A prefix class that asks for more than its holders can carry (stage 1 of hotspot mitigation).

x is the class's share of arrivals in the sliding minute, M the instances that hold its prefix, N all that take
requests. ``x * N > |M|`` divides by nothing, and can never hold when everybody has the prefix.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "hotspot_class"
CLASS_LABEL = "prefix_class"
TOP = 5
"""Classes by requests that are looked at in each window."""


class HotspotClassLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a class is worth looking at."""

    least_requests: Annotated[int, Meta(ge=1)] = 30
    """Requests of the class in a minute, below which nothing is judged."""


def hotspot_class(window: Window, limits: HotspotClassLimits) -> Iterator[Finding]:
    """Find classes, among the largest, for which ``x * N > |M|``."""
    racing = {identity for identity, instance in window.instances(10).items() if instance.takes_requests}
    arrivals = sum(workload.requests for workload in window.workloads().values())
    for span in window.classes()[:TOP]:
        holders = racing & span.holders
        if not holders or span.requests < limits.least_requests or not arrivals:
            continue
        share = min(1.0, span.requests / arrivals)
        if not share * len(racing) > len(holders):
            continue
        yield Finding(
            kind=KIND,
            severity=Severity.WARNING,
            labels={CLASS_LABEL: span.key},
            summary=f"Prefix class {span.key[:8]} is {share:.0%} of all requests, and {len(holders)} of "
            f"{len(racing)} instances hold its prefix",
            values={
                "share": round(share, 4),
                "requests": span.requests,
                "holders": len(holders),
                "instances": len(racing),
                "even_share": round(len(holders) / len(racing), 4),
            },
        )
