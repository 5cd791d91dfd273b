"""Who may do what: scopes, and the scopes of each role.

Every endpoint asks for one scope to read and one to write. A person has the scopes of a role, an API token those it
was made with; nothing else decides.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from controlplane.errors import Invalid


class Scope(StrEnum):
    """One thing that a caller may do."""

    READ = "read"
    """See everything but secrets."""
    INSTANCES = "instances"
    """Register, change, drain and remove instances; heartbeat."""
    POLICIES = "policies"
    """Change policies, workloads, model names, admission and SLOs."""
    ALERTS = "alerts"
    """Acknowledge, assign, silence."""
    TENANTS = "tenants"
    """Change tenants, their quotas and their keys."""
    ROUTER = "router"
    """Be a router worker: fetch the configuration, deliver snapshots."""
    ADMIN = "admin"
    """Everything, and people, API tokens and settings."""


class Role(StrEnum):
    """What a person may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


ROLE_SCOPES: Mapping[Role, frozenset[Scope]] = {
    Role.VIEWER: frozenset({Scope.READ}),
    Role.OPERATOR: frozenset({Scope.READ, Scope.INSTANCES, Scope.POLICIES, Scope.ALERTS}),
    Role.ADMIN: frozenset(Scope),
}


def allows(scopes: frozenset[Scope], wanted: Scope) -> bool:
    """Return whether somebody with ``scopes`` may do what ``wanted`` stands for."""
    return wanted in scopes or Scope.ADMIN in scopes


def parse_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Return the scopes of these names.

    :raises Invalid: for a name that is none, or for no names.
    """
    wanted = list(names)
    known = ", ".join(scope.value for scope in Scope)
    unknown = [name for name in wanted if name not in set(Scope)]
    if unknown:
        raise Invalid({"scopes": [f"There is no scope {name!r}; there are: {known}." for name in unknown]})
    if not wanted:
        raise Invalid({"scopes": [f"At least one is needed of: {known}."]})
    return frozenset(Scope(name) for name in wanted)
