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
from router.core.hotspot.stage_one import is_hot

KIND = "hotspot_class"
CLASS_LABEL = "prefix_class"


class HotspotClassLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a class is worth looking at."""

    least_requests: Annotated[int, Meta(ge=1)] = 30
    """Requests of the class in a minute, below which nothing is judged."""


def hotspot_class(window: Window, limits: HotspotClassLimits) -> Iterator[Finding]:
    """Find classes that are hot by the routers' own rule, over the reports of all of them."""
    ready = window.ready()
    for span in window.classes():
        holders = len(ready & span.holders)
        if span.requests < limits.least_requests or not is_hot(span.requests, span.arrivals, holders, len(ready)):
            continue
        share = span.requests / span.arrivals
        yield Finding(
            kind=KIND,
            severity=Severity.WARNING,
            labels={CLASS_LABEL: span.id},
            summary=f"Prefix class {span.id[:4]} is {share:.0%} of all requests, and {holders} of {len(ready)} "
            f"instances hold its prefix",
            values={
                "share": round(share, 4),
                "share_limit": round(holders / len(ready), 4),
                "requests": span.requests,
                "holders": holders,
                "instances": len(ready),
                "prefix_tokens": span.prefix_tokens,
                "model": span.model,
                "mitigated": "yes" if span.mitigated else "no",
            },
        )
