"""An instance in rotation gets next to nothing while the others are busy."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "starvation"


class StarvationLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an instance starves."""

    share_of_even: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Requests that it gets over those that it would get if all got the same."""
    least_even: Annotated[int, Meta(ge=1)] = 20
    """Requests an instance, if all got the same, below which nothing is judged."""
    others_bs: Annotated[float, Meta(ge=0)] = 2.0
    """Mean BS of the others below which nobody needs the instance."""


def starvation(window: Window, limits: StarvationLimits) -> Iterator[Finding]:
    """Find instances that take requests and get almost none of many."""
    racing = [instance for instance in window.instances().values() if instance.takes_requests]
    if len(racing) < 2:
        return
    even = sum(instance.requests for instance in racing) / len(racing)
    if even < limits.least_even:
        return
    for instance in racing:
        others_bs = sum(other.bs_mean for other in racing if other is not instance) / (len(racing) - 1)
        if instance.requests <= limits.share_of_even * even and others_bs >= limits.others_bs:
            yield Finding(
                kind=KIND,
                severity=Severity.WARNING,
                labels={"instance": instance.name},
                summary=f"{instance.name} got {instance.requests} requests in a minute, an even share is {even:.0f}",
                values={
                    "requests": instance.requests,
                    "even_requests": round(even, 1),
                    "bs": round(instance.bs_mean, 2),
                    "others_bs": round(others_bs, 2),
                },
            )
