"""The places in the rail. An entry appears together with its page, never before it."""

from typing import NamedTuple

from controlplane.accounts.access import Scope


class Place(NamedTuple):
    """One entry of the rail."""

    label: str
    url_name: str
    counts_alerts: bool = False
    """Whether it shows how many alerts fire, live."""
    scope: Scope = Scope.READ
    """Whoever lacks it does not see the entry."""


PLACES = (
    Place("Live scores", "dashboards:live"),
    Place("Decisions", "dashboards:decisions"),
    Place("Instances", "dashboards:instances"),
    Place("Policies", "dashboards:policies"),
    Place("Workloads", "dashboards:workloads"),
    Place("SLOs", "dashboards:slos"),
    Place("Alerts", "dashboards:alerts", counts_alerts=True),
    Place("Lab", "dashboards:lab"),
    Place("Tenants", "dashboards:tenants"),
    Place("Audit", "dashboards:audit"),
    Place("Settings", "dashboards:settings", scope=Scope.ADMIN),
)
