"""Moving instances through their life-cycle: the only place that writes a state."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM, Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import NotFound, RequestsInFlight
from controlplane.fleet.lifecycle import Event, next_state, possible
from controlplane.fleet.models import Instance
from controlplane.fleet.services.description import describe
from controlplane.publication import configuration_changed
from router.core.instance import InstanceState

_MAX_REASON = 500


def locked(instance_id: UUID | str) -> Instance:
    """Return an instance that is not removed, locked until the end of the transaction.

    :raises NotFound: when there is none.
    """
    found = Instance.objects.select_for_update().exclude(state=InstanceState.REMOVED).filter(pk=instance_id).first()
    if found is None:
        raise NotFound("There is no such instance, or it was removed.")
    return found


def move(instance: Instance, event: Event, reason: str) -> bool:
    """Let an event happen to an instance, in memory; return whether its state changed.

    :raises IllegalTransition: when the life-cycle has no such move.
    """
    before = instance.life
    after = next_state(before, event)
    if after is before:
        return False
    instance.state = after
    instance.state_reason = reason[:_MAX_REASON]
    instance.state_since = timezone.now()
    if after is InstanceState.WARMING and settings.WARMING_S == 0:
        instance.state = next_state(after, Event.WARMED)
    if after is InstanceState.PROBING:
        instance.probe_due_at = instance.state_since
    return True


def drain(*, actor: Actor, instance_id: UUID | str, reason: str = "") -> Instance:
    """Let an instance finish what it has and take nothing new."""
    return _wish(actor, instance_id, Event.DRAIN, reason or f"drain asked for by {actor.label}")


def undrain(*, actor: Actor, instance_id: UUID | str, reason: str = "") -> Instance:
    """Bring a drained instance, or one in maintenance, back; it must pass a probe."""
    return _wish(actor, instance_id, Event.UNDRAIN, reason or f"undrain asked for by {actor.label}")


def maintain(*, actor: Actor, instance_id: UUID | str, reason: str = "") -> Instance:
    """Take an instance out of rotation at once."""
    return _wish(actor, instance_id, Event.MAINTAIN, reason or f"maintenance asked for by {actor.label}")


@transaction.atomic
def preempt(*, actor: Actor, instance_id: UUID | str, in_s: int) -> Instance:
    """Note that a spot instance will be taken away in ``in_s`` seconds, and drain it."""
    instance = locked(instance_id)
    instance.preempt_at = timezone.now() + timedelta(seconds=in_s)
    instance.save(update_fields=["preempt_at", "updated_at"])
    return drain(actor=actor, instance_id=instance_id, reason=f"spot instance is taken away in {in_s} s")


@transaction.atomic
def remove(*, actor: Actor, instance_id: UUID | str, in_flight: int, force: bool = False) -> Instance:
    """Remove an instance.

    :param in_flight: requests there now, as routers reported.
    :raises RequestsInFlight: when there are some and ``force`` is not set.
    """
    if in_flight and not force:
        raise RequestsInFlight(
            f"{in_flight} requests are in flight there; drain it first, or use force.", in_flight=in_flight
        )
    return _wish(actor, instance_id, Event.REMOVE, f"removed by {actor.label}")


@transaction.atomic
def mark_idle(*, instance_id: UUID | str) -> bool:
    """Note that no router has requests at a draining instance any more; return whether that made it *drained*."""
    instance = Instance.objects.select_for_update().filter(pk=instance_id).first()
    if instance is None or not possible(instance.life, Event.IDLE):
        return False
    follow(instance, Event.IDLE, "every router reports that nothing is in flight")
    return True


@transaction.atomic
def finish_warming() -> int:
    """Move every instance that has been warming for long enough to *ready*; return how many were."""
    since = timezone.now() - timedelta(seconds=settings.WARMING_S)
    due = Instance.objects.select_for_update().filter(state=InstanceState.WARMING, state_since__lte=since)
    moved = 0
    for instance in due.order_by("pk"):
        moved += move(instance, Event.WARMED, f"warming for {settings.WARMING_S:g} s")
        instance.save(update_fields=["state", "state_reason", "state_since", "updated_at"])
    if moved:
        configuration_changed()
    return moved


def follow(instance: Instance, event: Event, reason: str) -> bool:
    """Let the control plane's own event happen to a locked instance, save, audit and publish it."""
    before = describe(instance)
    if not move(instance, event, reason):
        return False
    instance.save()
    record(
        actor=SYSTEM,
        action=f"instance.{event.value}",
        target=("instance", instance.pk, instance.name),
        before=before,
        after=describe(instance),
        message=instance.state_reason,
    )
    configuration_changed()
    return True


@transaction.atomic
def _wish(actor: Actor, instance_id: UUID | str, event: Event, reason: str) -> Instance:
    instance = locked(instance_id)
    before = describe(instance)
    if move(instance, event, reason):
        instance.save()
        record(
            actor=actor,
            action=f"instance.{event.value}",
            target=("instance", instance.pk, instance.name),
            before=before,
            after=describe(instance),
            message=reason,
        )
        configuration_changed()
    return instance
