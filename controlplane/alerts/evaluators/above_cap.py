"""Requests were placed although every instance was above their policy's P-token cap: the least bad one took them."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "above_cap"


class AboveCapLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When it is worth a look."""

    least_requests: Annotated[int, Meta(ge=1)] = 10
    """Requests above the cap in a minute."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Requests above the cap over all of the workload's."""


def above_cap(window: Window, limits: AboveCapLimits) -> Iterator[Finding]:
    """Find workloads of which more than a few requests found no instance below the cap."""
    for workload in window.workloads().values():
        above, all_requests = workload.above_cap, max(workload.requests, workload.above_cap)
        if above < limits.least_requests or above < limits.share * all_requests:
            continue
        yield Finding(
            kind=KIND,
            severity=Severity.WARNING,
            labels={"workload": workload.name},
            summary=f"For {above} of {all_requests} requests of {workload.name} in a minute every instance was above "
            f"the P-token cap",
            values={
                "requests_above_cap": above,
                "requests": all_requests,
                "share_above_cap": round(above / all_requests, 4),
                "policy": workload.policy,
            },
        )
