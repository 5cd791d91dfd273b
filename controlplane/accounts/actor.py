"""The actor: who is behind a change, as services and the audit log need to know it."""

from dataclasses import dataclass

from controlplane.accounts.access import Scope


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody or something that changes things; ``label`` stays readable when the account is gone."""

    label: str
    user_id: int | None = None
    token_id: str | None = None
    scopes: frozenset[Scope] = frozenset()


SYSTEM = Actor("system")
"""The control plane itself: probes, leases, sweeps."""
