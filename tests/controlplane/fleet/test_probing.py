"""Probe results move instances through their life, and only what routers need to know is published."""

from collections.abc import Callable

import pytest

from controlplane.accounts.models import AuditEntry
from controlplane.bridge.publisher import newest_number
from controlplane.fleet.engine_facts import MetricFacts
from controlplane.fleet.models import Instance
from controlplane.fleet.probe import ProbeResult, ProbeTarget
from controlplane.fleet.services import moves, probes
from router.core.instance import InstanceState
from tests.controlplane.conftest import ACTOR

Register = Callable[..., Instance]
BAD = ProbeResult(False, ("Cannot talk to it.",))


def good(started_unix_s: float = 100.0, models: tuple[str, ...] = ("sim",)) -> ProbeResult:
    return ProbeResult(True, (), models, MetricFacts("vllm", 16, 1600, started_unix_s))


def take_in(instance: Instance, *results: ProbeResult) -> None:
    for result in results:
        probes.take_in(instance_id=instance.pk, url=instance.url, result=result)
    instance.refresh_from_db()


@pytest.fixture
def ready(register: Register, settings: object) -> Instance:
    """An instance in rotation."""
    settings.WARMING_S = 0  # type: ignore[attr-defined]
    instance = register()
    take_in(instance, good(), good())
    return instance


def test_the_first_good_probe_brings_it_into_rotation_and_fills_in_the_facts(register: Register) -> None:
    instance = register()
    take_in(instance, good())
    assert instance.life is InstanceState.WARMING
    assert instance.served_models == ["sim"]
    assert (instance.engine, instance.kv_block_tokens, instance.kv_capacity_tokens) == ("vllm", 16, 1600)
    assert instance.epoch == 1


def test_declared_models_stay_declared(register: Register) -> None:
    instance = register(models=("mine",))
    take_in(instance, good(models=("other",)))
    assert instance.served_models == ["mine"]


def test_three_failures_in_a_row_take_it_out_with_the_reason(ready: Instance) -> None:
    take_in(ready, BAD, BAD)
    assert ready.life is InstanceState.READY
    take_in(ready, BAD)
    assert ready.life is InstanceState.UNREACHABLE
    assert "3 probes in a row failed: Cannot talk to it." in ready.state_reason


def test_it_comes_back_with_its_cache_when_the_process_is_the_same(ready: Instance) -> None:
    take_in(ready, BAD, BAD, BAD, good(), good())
    assert ready.life is InstanceState.READY
    assert ready.epoch == 1


def test_it_comes_back_without_its_cache_after_a_restart(ready: Instance) -> None:
    take_in(ready, BAD, BAD, BAD, good(200.0), good(200.0))
    assert ready.epoch == 2


def test_a_restart_between_two_probes_is_a_new_epoch_at_once(ready: Instance) -> None:
    take_in(ready, good(200.0))
    assert ready.epoch == 2


def test_a_drained_instance_stays_drained_whatever_probes_say(ready: Instance) -> None:
    moves.maintain(actor=ACTOR, instance_id=ready.pk)
    take_in(ready, BAD, BAD, BAD, good(200.0), good(200.0))
    assert ready.life is InstanceState.MAINTENANCE
    assert ready.epoch == 2


def test_a_healthy_probe_publishes_nothing_and_costs_one_update(
    ready: Instance, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[..., object]
) -> None:
    before = newest_number()
    monkeypatch.setattr(probes, "probe_all", lambda targets, timeout_s: [good() for _ in targets])
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        probes.probe_instances([ready])
    assert newest_number() == before


def test_a_result_of_an_address_that_was_left_is_dropped(register: Register) -> None:
    instance = register()
    probes.take_in(instance_id=instance.pk, url="http://10.9.9.9", result=good())
    instance.refresh_from_db()
    assert instance.probed_at is None


def test_due_probes_are_claimed_once(register: Register) -> None:
    register("a", "http://10.0.0.1")
    register("b", "http://10.0.0.2")
    assert {instance.name for instance in probes.claim_due(10)} == {"a", "b"}
    assert probes.claim_due(10) == []


def test_a_first_probe_is_shown_and_its_moves_are_audited(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ProbeTarget] = []

    def answer(targets: list[ProbeTarget], timeout_s: float) -> list[ProbeResult]:
        asked.extend(targets)
        assert Instance.objects.get().life is InstanceState.PROBING
        return [good()]

    monkeypatch.setattr(probes, "probe_all", answer)
    instance = register()
    probes.probe_instances(probes.claim_one(instance.pk))
    assert [target.url for target in asked] == [instance.url]
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["instance.register", "instance.probe", "instance.up"]
