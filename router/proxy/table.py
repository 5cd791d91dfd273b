"""The routing table: the part of a configuration document that requests are looked up in, swapped whole."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from router.config import ConfigDocument
from router.core.policy import Policy
from router.core.request import DEFAULT_WORKLOAD
from router.core.workload_match import Matcher
from router.proxy.access import Access, access_of
from router.proxy.aliases import Split, splits_of
from router.proxy.wire.grammar import Fields

WORKLOAD_HEADER: Final = b"x-pointsman-workload"


class RoutingTable(msgspec.Struct, frozen=True):
    """Policies by workload, the rules that find the workload, the keys, and the models that instances list."""

    revision: int
    policies: Mapping[str, Policy]
    """By workload name; the default workload is always there."""
    models: frozenset[str]
    """Every name that an instance lists."""
    access: Access = Access({}, False)
    matchers: Sequence[tuple[str, Matcher]] = ()
    """Workloads that are found by a rule, in the order in which they are asked."""
    shadows: Mapping[str, Policy] = {}
    """Shadow policies by workload."""
    splits: Mapping[str, Split] = {}
    """Models behind aliases."""

    def workload(self, fields: Fields, tenant: str | None, model: str, path: bytes) -> str:
        """Return the workload of a request: the named one, else the first whose rule holds, else the default."""
        named = fields.get(WORKLOAD_HEADER)
        if named is not None and (name := named.decode("utf-8", "replace")) in self.policies:
            return name
        if self.matchers:
            text = path.decode("ascii")
            for name, matcher in self.matchers:
                if matcher.holds(fields, tenant, model, text):
                    return name
        return DEFAULT_WORKLOAD


def table_of(document: ConfigDocument) -> RoutingTable:
    """Build the table of a valid document."""
    by_name = {policy.name: policy for policy in document.policies}
    workloads = document.workloads
    return RoutingTable(
        document.revision,
        {workload.name: by_name[workload.policy] for workload in workloads},
        frozenset(name for instance in document.instances for name in instance.models),
        access_of(document),
        [(workload.name, Matcher(workload.match)) for workload in workloads if not workload.match.is_empty],
        {w.name: by_name[w.shadow_policy] for w in workloads if w.shadow_policy is not None},
        splits_of(document.aliases),
    )
