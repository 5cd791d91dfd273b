"""Scheduled work on SLOs."""

from celery import shared_task

from controlplane.slos.services import count_minutes


@shared_task(name="slos.count_minutes", time_limit=120)  # type: ignore[untyped-decorator]
def count_slo_minutes() -> None:
    """Count the minutes that have passed against the targets."""
    count_minutes()
