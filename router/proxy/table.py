"""The routing table: the part of a configuration document that requests are looked up in, swapped whole."""

from collections.abc import Mapping

import msgspec

from router.config import ConfigDocument
from router.core.policy import Policy
from router.core.request import DEFAULT_WORKLOAD


class RoutingTable(msgspec.Struct, frozen=True):
    """Policies by workload, and the models that the fleet is configured to serve."""

    revision: int
    policies: Mapping[str, Policy]
    """By workload name; the default workload is always there."""
    models: frozenset[str]
    """Every name that an instance lists."""

    def workload(self, name: str | None) -> str:
        """Return the workload that a request belongs to: the named one, or the default for an unknown name."""
        return name if name is not None and name in self.policies else DEFAULT_WORKLOAD


def table_of(document: ConfigDocument) -> RoutingTable:
    """Build the table of a valid document."""
    by_name = {policy.name: policy for policy in document.policies}
    return RoutingTable(
        document.revision,
        {workload.name: by_name[workload.policy] for workload in document.workloads},
        frozenset(name for instance in document.instances for name in instance.models),
    )
