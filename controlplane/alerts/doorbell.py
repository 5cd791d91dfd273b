"""Ringing for the tasks of this app."""

from typing import Any

from controlplane.alerts.task_names import DELIVER, EVALUATE, LOOK_EARLY
from controlplane.fleet import doorbell


def ring_evaluation(**_: Any) -> None:
    """Have the newest window evaluated now (receiver of "a roll-up is there")."""
    doorbell.ring(EVALUATE)


def ring_early_look(**_: Any) -> None:
    """Have hot classes looked for now (receiver of "a roll-up was written early")."""
    doorbell.ring(LOOK_EARLY)


def ring_deliveries_on_commit() -> None:
    """Have the outbox looked at once the present transaction is committed."""
    doorbell.ring_on_commit(DELIVER)
