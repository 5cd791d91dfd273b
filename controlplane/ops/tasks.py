"""Scheduled work on everything."""

from celery import shared_task

from controlplane.ops.retention import prune


@shared_task(name="ops.prune", time_limit=600)  # type: ignore[untyped-decorator]
def prune_rows() -> None:
    """Delete rows whose time is over."""
    prune()
