"""Registering, changing, draining and removing instances; leases."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from controlplane.accounts.models import AuditEntry
from controlplane.bridge.document import build_document
from controlplane.bridge.publisher import newest_number
from controlplane.errors import IllegalTransition, Invalid, NameTaken, NotFound, RequestsInFlight
from controlplane.fleet.models import Instance
from controlplane.fleet.services import leases, moves, registration
from controlplane.fleet.spec import InstanceSpec
from router.config import EventDirection, KvEventsConfig
from router.core.instance import InstanceState
from tests.controlplane.conftest import ACTOR

Register = Callable[..., Instance]


def force_state(instance: Instance, state: InstanceState) -> None:
    Instance.objects.filter(pk=instance.pk).update(state=state)
    instance.refresh_from_db()


def test_registration_rings_for_a_probe_once_it_is_committed(
    register: Register, no_broker: list[object], django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        instance = register()
    assert no_broker == [("fleet.probe_instance", (str(instance.pk),))]


def test_a_name_is_taken_until_its_instance_is_removed(register: Register) -> None:
    first = register()
    with pytest.raises(NameTaken):
        register()
    moves.remove(actor=ACTOR, instance_id=first.pk, in_flight=0)
    assert register().pk != first.pk


def test_the_same_put_again_changes_nothing(register: Register) -> None:
    spec = InstanceSpec(name="gpu-1", url="http://10.0.0.1:8000", labels={"rack": "b"})
    made, created = registration.put(actor=ACTOR, spec=spec)
    revision, entries = newest_number(), AuditEntry.objects.count()
    again, created_again = registration.put(actor=ACTOR, spec=spec)
    assert (created, created_again) == (True, False)
    assert again.pk == made.pk
    assert (newest_number(), AuditEntry.objects.count()) == (revision, entries)


def test_another_address_starts_over_with_another_epoch(register: Register) -> None:
    instance = register()
    force_state(instance, InstanceState.READY)
    spec = InstanceSpec(name="gpu-1", url="http://10.0.0.2:8000")
    changed, _ = registration.put(actor=ACTOR, spec=spec)
    assert changed.life is InstanceState.REGISTERED
    assert changed.epoch == 2


def test_the_audit_log_has_before_and_after(register: Register) -> None:
    instance = register()
    spec = registration.spec_of(instance, labels={"rack": "b"})
    registration.change(actor=ACTOR, instance_id=instance.pk, spec=spec)
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert (entry.actor, entry.action) == ("tester", "instance.change")
    assert (entry.before["labels"], entry.after["labels"]) == ({}, {"rack": "b"})


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"name": "no spaces"}, "name"),
        ({"name": ""}, "name"),
        ({"url": "gopher://x"}, "url"),
        ({"hardware": "abacus"}, "hardware"),
        ({"lease_s": 1}, "lease_s"),
        ({"kv_block_tokens": 0}, "kv_block_tokens"),
        ({"kv_events": KvEventsConfig(endpoint="http://10.0.0.1:5557")}, "kv_events"),
        ({"kv_events": KvEventsConfig(endpoint="tcp://*:5557")}, "kv_events"),
        ({"kv_events": KvEventsConfig(endpoint="tcp://10.0.0.1:5557", replay="tcp://10.0.0.1:70000")}, "kv_events"),
        ({"models": ("a b",)}, "models"),
        ({"labels": {"": "x"}}, "labels"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_field(wanted: dict[str, object], field: str) -> None:
    spec = InstanceSpec(**({"name": "gpu-1", "url": "http://10.0.0.1"} | wanted))  # type: ignore[arg-type]
    with pytest.raises(Invalid) as caught:
        spec.check()
    assert set(caught.value.fields) == {field}


def test_kv_event_endpoints_reach_the_routers_stay_over_other_changes_and_can_be_taken_back(
    register: Register,
) -> None:
    events = KvEventsConfig(endpoint="tcp://*:5557", topic="kv", direction=EventDirection.BIND)
    instance = register(kv_events=events)
    assert build_document(1).instances[0].kv_events == events
    change = partial(registration.change, actor=ACTOR, instance_id=instance.pk)
    instance = change(spec=registration.spec_of(instance, labels={"rack": "b"}))
    assert build_document(1).instances[0].kv_events == events
    change(spec=registration.spec_of(instance, kv_events=None))
    assert build_document(1).instances[0].kv_events is None


def test_drain_waits_for_routers_and_undrain_brings_back(register: Register) -> None:
    instance = register()
    force_state(instance, InstanceState.READY)
    assert moves.drain(actor=ACTOR, instance_id=instance.pk).life is InstanceState.DRAINING
    assert moves.mark_idle(instance_id=instance.pk)
    assert not moves.mark_idle(instance_id=instance.pk)
    instance.refresh_from_db()
    assert instance.life is InstanceState.DRAINED
    assert moves.undrain(actor=ACTOR, instance_id=instance.pk).life is InstanceState.PROBING


def test_removing_is_refused_while_requests_are_in_flight_unless_forced(register: Register) -> None:
    instance = register()
    with pytest.raises(RequestsInFlight, match="3 requests"):
        moves.remove(actor=ACTOR, instance_id=instance.pk, in_flight=3)
    moves.remove(actor=ACTOR, instance_id=instance.pk, in_flight=3, force=True)
    with pytest.raises(NotFound):
        moves.drain(actor=ACTOR, instance_id=instance.pk)


def test_what_the_table_does_not_know_is_refused(register: Register) -> None:
    instance = register()
    with pytest.raises(IllegalTransition):
        moves.move(instance, moves.Event.IDLE, "")


def test_a_spot_notice_drains_and_says_when(register: Register) -> None:
    instance = register(spot=True)
    force_state(instance, InstanceState.READY)
    told_at = timezone.now()
    told = moves.preempt(actor=ACTOR, instance_id=instance.pk, in_s=30)
    assert told.life is InstanceState.DRAINING
    assert told.preempt_at is not None
    assert told.preempt_at >= told_at + timedelta(seconds=30)


def test_a_lease_that_runs_out_takes_it_out_and_a_heartbeat_brings_it_back(register: Register) -> None:
    instance = register(lease_s=10)
    force_state(instance, InstanceState.READY)
    assert leases.expire_leases() == 0
    Instance.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert leases.expire_leases() == 1
    instance.refresh_from_db()
    assert instance.life is InstanceState.UNREACHABLE
    assert "no heartbeat for 10 s" in instance.state_reason
    assert leases.expire_leases() == 0
    assert leases.heartbeat(instance=instance).life is InstanceState.PROBING


def test_a_heartbeat_is_one_write(register: Register, django_assert_num_queries: Callable[..., object]) -> None:
    instance = register(lease_s=10)
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        leases.heartbeat(instance=instance)


def test_who_neither_beats_nor_answers_for_long_is_removed(register: Register) -> None:
    gone, kept = register("gone", "http://10.0.0.1", lease_s=10), register("kept", "http://10.0.0.2")
    past = timezone.now() - timedelta(days=1)
    Instance.objects.update(state=InstanceState.UNREACHABLE, state_since=past)
    Instance.objects.filter(pk=gone.pk).update(lease_expires_at=past)
    assert leases.remove_long_expired() == 1
    gone.refresh_from_db()
    kept.refresh_from_db()
    assert (gone.life, kept.life) == (InstanceState.REMOVED, InstanceState.UNREACHABLE)


def test_warming_ends_after_its_time(register: Register) -> None:
    instance = register()
    force_state(instance, InstanceState.WARMING)
    assert moves.finish_warming() == 0
    Instance.objects.update(state_since=timezone.now() - timedelta(seconds=301))
    assert moves.finish_warming() == 1
    instance.refresh_from_db()
    assert instance.life is InstanceState.READY
