"""Scheduled and rung-for work on the fleet. Every task can run twice, or not at all, without harm."""

from celery import shared_task

from controlplane.fleet.services import leases, moves, probes
from controlplane.fleet.task_names import PROBE_INSTANCE

_SWEEP = 2048


@shared_task(name=PROBE_INSTANCE, time_limit=60)  # type: ignore[untyped-decorator]
def probe_instance(instance_id: str) -> None:
    """Probe one instance now: it was registered or changed."""
    probes.probe_instances(probes.claim_one(instance_id))


@shared_task(name="fleet.probe_due", time_limit=120)  # type: ignore[untyped-decorator]
def probe_due() -> None:
    """Probe all instances whose probe is due."""
    probes.probe_instances(probes.claim_due(_SWEEP))


@shared_task(name="fleet.follow_leases", time_limit=120)  # type: ignore[untyped-decorator]
def follow_leases() -> None:
    """End leases that ran out, remove what has been gone for long, and let warm instances be ready."""
    leases.expire_leases()
    leases.remove_long_expired()
    moves.finish_warming()
