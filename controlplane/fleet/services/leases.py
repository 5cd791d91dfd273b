"""Leases: an instance that promised heartbeats and stopped sending them is out of rotation."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.fleet.lifecycle import Event, possible
from controlplane.fleet.models import Instance
from controlplane.fleet.services.moves import follow, locked, remove
from router.core.instance import InstanceState


def heartbeat(*, instance: Instance) -> Instance:
    """Renew the lease of a living instance: one UPDATE, where it brings nothing back."""
    now = timezone.now()
    expired = instance.lease_expires_at is not None and instance.lease_expires_at <= now
    instance.last_heartbeat_at = now
    if instance.lease_s is not None:
        instance.lease_expires_at = now + timedelta(seconds=instance.lease_s)
    Instance.objects.filter(pk=instance.pk).update(last_heartbeat_at=now, lease_expires_at=instance.lease_expires_at)
    return _renewed(instance.pk) if expired and instance.life is InstanceState.UNREACHABLE else instance


@transaction.atomic
def expire_leases() -> int:
    """Take every instance whose lease ran out, out of rotation; return how many were."""
    due = Instance.objects.select_for_update().filter(lease_expires_at__lte=timezone.now())
    expired = 0
    for instance in due.exclude(state=InstanceState.REMOVED).order_by("pk"):
        if possible(instance.life, Event.LEASE_EXPIRED):
            expired += follow(instance, Event.LEASE_EXPIRED, f"no heartbeat for {instance.lease_s} s")
    return expired


def remove_long_expired() -> int:
    """Remove every instance that neither sent a heartbeat nor answered a probe for long; return how many were."""
    before = timezone.now() - timedelta(seconds=settings.REMOVE_EXPIRED_AFTER_S)
    gone = Instance.objects.filter(
        state=InstanceState.UNREACHABLE, lease_expires_at__lte=before, state_since__lte=before
    ).exclude(probe_successes__gt=0)
    identities = list(gone.values_list("pk", flat=True))
    for identity in identities:
        remove(actor=SYSTEM, instance_id=identity, in_flight=0)
    return len(identities)


def lease_holds(instance: Instance) -> bool:
    """Return whether an instance keeps its promise of heartbeats, or made none."""
    return instance.lease_expires_at is None or instance.lease_expires_at > timezone.now()


@transaction.atomic
def _renewed(instance_id: UUID | str) -> Instance:
    instance = locked(instance_id)
    if possible(instance.life, Event.LEASE_RENEWED):
        follow(instance, Event.LEASE_RENEWED, "heartbeats are back")
    return instance
