"""Registering instances and changing their settings; saying the same thing twice changes nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import NameTaken
from controlplane.fleet.credentials import authorization_of
from controlplane.fleet.doorbell import ring_on_commit
from controlplane.fleet.event_sources import kv_events_of
from controlplane.fleet.lifecycle import Event
from controlplane.fleet.models import Instance, InstanceRole, ModelsSource
from controlplane.fleet.services.description import describe
from controlplane.fleet.services.moves import locked, move
from controlplane.fleet.spec import InstanceSpec
from controlplane.fleet.task_names import PROBE_INSTANCE
from controlplane.publication import configuration_changed
from controlplane.sealing import seal
from router.core.instance import InstanceState


@transaction.atomic
def register(*, actor: Actor, spec: InstanceSpec) -> Instance:
    """Register a new instance, and have it probed at once.

    :raises Invalid: for settings that cannot be.
    :raises NameTaken: when an instance has the name.
    """
    spec.check()
    now = timezone.now()
    instance = Instance(name=spec.name, state=InstanceState.REGISTERED, state_since=now, probe_due_at=now)
    instance.state_reason = f"registered by {actor.label}"
    _take_over(instance, spec)
    try:
        with transaction.atomic():
            instance.save(force_insert=True)
    except IntegrityError as error:
        raise NameTaken(f"There is already an instance named {spec.name}.") from error
    record(
        actor=actor,
        action="instance.register",
        target=("instance", instance.pk, instance.name),
        after=describe(instance),
    )
    _probe_soon(instance)
    configuration_changed()
    return instance


@transaction.atomic
def put(*, actor: Actor, spec: InstanceSpec) -> tuple[Instance, bool]:
    """Make the instance of this name be as the spec says; return it, and whether it is new.

    :raises Invalid: for settings that cannot be.
    """
    spec.check()
    known = Instance.objects.exclude(state=InstanceState.REMOVED).filter(name=spec.name).first()
    if known is not None:
        return change(actor=actor, instance_id=known.pk, spec=spec), False
    try:
        with transaction.atomic():
            return register(actor=actor, spec=spec), True
    except NameTaken:  # another request was faster
        other = Instance.objects.exclude(state=InstanceState.REMOVED).get(name=spec.name)
        return change(actor=actor, instance_id=other.pk, spec=spec), False


@transaction.atomic
def change(*, actor: Actor, instance_id: UUID | str, spec: InstanceSpec) -> Instance:
    """Give an instance other settings. A new address starts its life over.

    :raises Invalid: for settings that cannot be.
    :raises NameTaken: when another instance has the new name.
    """
    spec.check()
    instance = locked(instance_id)
    before, before_secret = describe(instance), instance.authorization
    moved_away = instance.url != spec.url
    _take_over(instance, spec)
    if moved_away:
        _forget_engine(instance)
        move(instance, Event.READDRESSED, f"{actor.label} changed the address to {spec.url}")
    after = describe(instance)
    if after == before and instance.authorization == before_secret:
        return instance
    try:
        with transaction.atomic():
            instance.save()
    except IntegrityError as error:
        raise NameTaken(f"There is already an instance named {spec.name}.") from error
    target = ("instance", instance.pk, instance.name)
    record(actor=actor, action="instance.change", target=target, before=before, after=after)
    _probe_soon(instance)
    configuration_changed()
    return instance


def spec_of(instance: Instance, **changes: Any) -> InstanceSpec:
    """Return the settings of an instance as a spec, with some of them replaced."""
    declared = instance.models_source == ModelsSource.DECLARED
    present = InstanceSpec(
        name=instance.name,
        url=instance.url,
        role=InstanceRole(instance.role),
        hardware=instance.hardware,
        models=tuple(instance.served_models) if declared else None,
        labels=instance.labels,
        spot=instance.spot,
        lease_s=instance.lease_s,
        kv_events=kv_events_of(instance),
        data_parallel_ranks=instance.data_parallel_ranks,
    )
    return replace(present, **changes)


def _take_over(instance: Instance, spec: InstanceSpec) -> None:
    instance.name = spec.name
    instance.url = spec.url
    instance.role = spec.role
    instance.hardware = spec.hardware
    instance.labels = dict(spec.labels)
    instance.spot = spec.spot
    if spec.models is not None:
        instance.served_models = list(spec.models)
        instance.models_source = ModelsSource.DECLARED
    elif instance.models_source == ModelsSource.DECLARED:
        instance.served_models = []
        instance.models_source = ModelsSource.PROBED
    if spec.kv_block_tokens is not None:
        instance.kv_block_tokens = spec.kv_block_tokens
    if spec.kv_capacity_tokens is not None:
        instance.kv_capacity_tokens = spec.kv_capacity_tokens
    instance.data_parallel_ranks = spec.data_parallel_ranks
    instance.kv_events = None if spec.kv_events is None else msgspec.to_builtins(spec.kv_events)
    _take_over_authorization(instance, spec.authorization)
    if spec.lease_s != instance.lease_s:
        instance.lease_s = spec.lease_s
        instance.lease_expires_at = None if spec.lease_s is None else timezone.now() + timedelta(seconds=spec.lease_s)


def _take_over_authorization(instance: Instance, wanted: str | None) -> None:
    if wanted is None or wanted == authorization_of(instance):
        return
    instance.authorization = seal(wanted.encode()) if wanted else None


def _forget_engine(instance: Instance) -> None:
    """Another address is another engine: nothing probed holds any more."""
    instance.epoch += 1
    instance.process_started_unix_s = None
    instance.probed_ranks = None
    instance.probe_ok = None
    instance.probe_reasons = []
    instance.probe_failures = instance.probe_successes = 0


def _probe_soon(instance: Instance) -> None:
    Instance.objects.filter(pk=instance.pk).update(probe_due_at=timezone.now())
    ring_on_commit(PROBE_INSTANCE, str(instance.pk))
