"""A tenant has used up a quota, and its requests are refused."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "quota_exhausted"


class QuotaExhaustedLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When refusals are worth a look."""

    least_refused: Annotated[int, Meta(ge=1)] = 10
    """Refused requests in a minute."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Refused requests over all of the tenant's."""


def quota_exhausted(window: Window, limits: QuotaExhaustedLimits) -> Iterator[Finding]:
    """Find tenants of which more than a few requests were refused."""
    for tenant in window.tenants().values():
        asked = tenant.requests + tenant.refused
        if tenant.refused < limits.least_refused or tenant.refused < limits.share * asked:
            continue
        yield Finding(
            kind=KIND,
            severity=Severity.INFO,
            labels={"tenant": tenant.name},
            summary=f"{tenant.refused} of {asked} requests of {tenant.name} were refused by its quota in a minute",
            values={"refused": tenant.refused, "asked": asked, "share_refused": round(tenant.refused / asked, 4)},
        )
