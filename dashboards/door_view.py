"""What the fleet's door looks like now: who waits, who was refused, which instances are full."""

from dataclasses import dataclass

from controlplane.telemetry.present import live_instances, live_workers, live_workloads
from router.core.instance import ROUTABLE_STATES


@dataclass(frozen=True, slots=True)
class DoorNow:
    """Sums over all live workers; counts are None while no worker is heard."""

    workers: int
    waiting: int | None = None
    refused_full: int | None = None
    """In the last minute, because too many waited already."""
    refused_late: int | None = None
    """In the last minute, because a wait was too long."""
    full: int | None = None
    """Instances that have as many requests as they may; None where there is no such limit."""
    instances: int = 0
    """Instances that take requests."""


def door_now(instance_requests: int | None) -> DoorNow:
    """Look at the door; ``instance_requests`` is from how many requests an instance counts as full."""
    workers = live_workers()
    if not workers:
        return DoorNow(0)
    rows = live_workloads().values()
    taking = [row for row in live_instances().values() if row.state in ROUTABLE_STATES and not row.ejected]
    return DoorNow(
        workers=workers,
        waiting=sum(row.queued for row in rows),
        refused_full=sum(row.refused.get("queue_full", 0) for row in rows),
        refused_late=sum(row.refused.get("queue_timeout", 0) for row in rows),
        full=None if instance_requests is None else sum(row.bs >= instance_requests for row in taking),
        instances=len(taking),
    )
