"""Configuration documents: numbered, never equal twice in a row, committed with the change that made them."""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from django.db import connection, transaction

from controlplane.bridge.models import ConfigRevision
from controlplane.bridge.publisher import current, newest_number, publish
from controlplane.fleet.models import Instance
from controlplane.fleet.services import moves, registration
from controlplane.fleet.spec import InstanceSpec
from router.config import parse_config
from tests.controlplane.conftest import ACTOR
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db
Register = Callable[..., Instance]


def test_equal_content_is_the_same_revision() -> None:
    first = publish()
    assert publish() == first
    assert newest_number() == first


def test_many_changes_that_nobody_asked_for_in_between_are_one_revision(register: Register) -> None:
    before = newest_number()
    for number in range(3):
        register(f"gpu-{number}", f"http://10.0.0.{number + 1}")
    assert newest_number() == before + 1


def test_a_change_that_was_taken_back_by_another_is_no_revision(register: Register) -> None:
    before = newest_number()
    moves.remove(actor=ACTOR, instance_id=register().pk, in_flight=0)
    assert newest_number() == before


def test_asking_for_the_newest_number_is_one_query(django_assert_num_queries: Callable[..., object]) -> None:
    newest_number()
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        newest_number()


def test_a_change_is_a_revision_that_parses_and_carries_its_number(register: Register) -> None:
    before = newest_number()
    instance = register(hardware="h100")
    number, body = current()
    document = parse_config(body)
    assert number == document.revision == before + 1
    (told,) = document.instances
    assert (told.id, told.name, told.url) == (str(instance.pk), "gpu-1", "http://10.0.0.1:8000")
    assert told.hardware is not None
    assert told.hardware.name == "h100"


def test_the_ranks_of_a_data_parallel_engine_are_told_one_by_one(register: Register) -> None:
    instance = register()
    Instance.objects.filter(pk=instance.pk).update(probed_ranks=2)
    publish()
    told = parse_config(current()[1]).instances
    assert [(one.id, one.name, one.rank) for one in told] == [
        (f"{instance.pk}#0", "gpu-1#0", 0),
        (f"{instance.pk}#1", "gpu-1#1", 1),
    ]
    assert {one.url for one in told} == {instance.url}
    Instance.objects.filter(pk=instance.pk).update(data_parallel_ranks=1)
    publish()
    assert [one.rank for one in parse_config(current()[1]).instances] == [None]


def test_a_removed_instance_is_not_told(register: Register) -> None:
    instance = register()
    moves.remove(actor=ACTOR, instance_id=instance.pk, in_flight=0)
    assert parse_config(current()[1]).instances == ()


def test_a_change_that_is_taken_back_takes_its_revision_with_it(register: Register) -> None:
    before = newest_number()
    with transaction.atomic():
        register()
        assert newest_number() == before + 1
        transaction.set_rollback(True)
    assert newest_number() == before
    assert Instance.objects.count() == 0


def test_old_documents_are_pruned(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.bridge.publisher.KEPT", 3)
    for number in range(6):
        register(f"gpu-{number}", f"http://10.0.0.{number + 1}")
        newest_number()
    assert ConfigRevision.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_changes_at_the_same_time_are_all_in_the_last_document() -> None:
    count = 4
    barrier = Barrier(count)

    def change(number: int) -> None:
        barrier.wait(PATIENCE_S)
        registration.register(actor=ACTOR, spec=InstanceSpec(name=f"gpu-{number}", url=f"http://10.0.0.{number + 1}"))
        connection.close()

    threads = [Thread(target=change, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    document = parse_config(current()[1])
    assert [instance.name for instance in document.instances] == [f"gpu-{number}" for number in range(count)]
    numbers = list(ConfigRevision.objects.values_list("number", flat=True))
    assert numbers == list(range(max(numbers), 0, -1))
