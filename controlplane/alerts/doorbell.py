"""Ringing for the tasks of this app."""

from typing import Any

from controlplane.fleet import doorbell


def ring_evaluation(**_: Any) -> None:
    """Have the newest window evaluated now (receiver of "a roll-up is there")."""
    from controlplane.alerts.tasks import evaluate  # tasks call services, which call this

    doorbell.ring(evaluate)


def ring_deliveries_on_commit() -> None:
    """Have the outbox looked at once the present transaction is committed."""
    from controlplane.alerts.tasks import deliver

    doorbell.ring_on_commit(deliver)
