"""Scheduled and rung-for work on alerts. Every task can run twice, or not at all, without harm."""

from celery import shared_task

from controlplane.alerts.early import look_early
from controlplane.alerts.evaluating import evaluate_newest
from controlplane.alerts.sending import send_due
from controlplane.alerts.task_names import DELIVER, EVALUATE, LOOK_EARLY

_ROUNDS = 20


@shared_task(name=EVALUATE, time_limit=60)  # type: ignore[untyped-decorator]
def evaluate() -> None:
    """Evaluate the newest window of telemetry."""
    evaluate_newest()


@shared_task(name=LOOK_EARLY, time_limit=60)  # type: ignore[untyped-decorator]
def look() -> None:
    """Look for hot classes in telemetry whose time is not over yet."""
    look_early()


@shared_task(name=DELIVER, time_limit=300)  # type: ignore[untyped-decorator]
def deliver() -> None:
    """Send the notifications that are due, in rounds, until none is."""
    for _ in range(_ROUNDS):
        if not send_due():
            return
