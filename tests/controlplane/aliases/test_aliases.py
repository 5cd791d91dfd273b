"""Aliases: what may be said, what is told to routers, what is kept of it."""

from collections.abc import Callable
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import pytest
from django.db import connections

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import AuditEntry
from controlplane.accounts.services import audit
from controlplane.aliases import selectors
from controlplane.aliases.models import ModelAlias
from controlplane.aliases.services import delete_alias, put_alias
from controlplane.aliases.target import MOST_TARGETS, Target
from controlplane.bridge.publisher import current
from controlplane.errors import Invalid, NameTaken, NotFound
from controlplane.fleet.models import Instance
from router.config import ModelAlias as AliasConfig
from router.config import ModelTarget, parse_config
from router.core.instance import InstanceState
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db
CANARY = [Target("old", 95.0), Target("new", 5.0)]


def put(name: str, *models: str) -> tuple[ModelAlias, bool]:
    return put_alias(actor=SYSTEM, name=name, targets=[Target(model) for model in models])


def serve(register: Callable[..., Instance], model: str, state: InstanceState = InstanceState.READY) -> None:
    """Have an instance serve a model."""
    instance = register(f"gpu-{model}", f"http://10.0.0.{len(model)}:8000", models=(model,))
    Instance.objects.filter(pk=instance.pk).update(state=state)


def test_routers_are_told_in_the_order_of_names() -> None:
    put("z", "m")
    put_alias(actor=SYSTEM, name="a/fast", targets=CANARY)
    assert parse_config(current()[1]).aliases == (
        AliasConfig(
            name="a/fast", targets=(ModelTarget(model="old", weight=95.0), ModelTarget(model="new", weight=5.0))
        ),
        AliasConfig(name="z", targets=(ModelTarget(model="m"),)),
    )


def test_the_same_again_changes_nothing_and_something_else_is_on_record() -> None:
    assert put("fast", "m")[1]
    before = current()[0]
    assert not put("fast", "m")[1]
    assert current()[0] == before
    put_alias(actor=SYSTEM, name="fast", targets=CANARY, description="Trying the new one.")
    delete_alias(actor=SYSTEM, name="fast")
    actions = list(AuditEntry.objects.filter(object_type="alias").order_by("pk").values_list("action", flat=True))
    assert actions == ["alias.create", "alias.change", "alias.delete"]
    change = AuditEntry.objects.get(action="alias.change")
    assert change.before is not None
    assert change.after is not None
    assert change.before["targets"] == [{"model": "m", "weight": 1.0}]
    assert change.after["targets"] == [{"model": "old", "weight": 95.0}, {"model": "new", "weight": 5.0}]
    assert parse_config(current()[1]).aliases == ()


@pytest.mark.parametrize("name", ["", " ", "two words", "tab\t", "x" * 201, "/a", "a/", "a//b", "..", "a/../b", "."])
def test_a_name_that_no_client_or_path_could_use_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        put(name, "m")
    assert list(refused.value.fields) == ["name"]


@pytest.mark.parametrize("name", ["gpt-4o", "GPT-4o", "Qwen/Qwen3-32B", "llama3:8b", "größe", "x" * 200])
def test_names_are_those_of_models_letter_by_letter(name: str) -> None:
    put(name, "m")
    assert selectors.alias_named(name).name == name
    with pytest.raises(NotFound):
        selectors.alias_named(name.swapcase())


@pytest.mark.parametrize(
    ("targets", "field"),
    [
        ([], "targets"),
        ([Target(f"m{number}") for number in range(MOST_TARGETS + 1)], "targets"),
        ([Target("m"), Target("")], "targets.1.model"),
        ([Target("two words")], "targets.0.model"),
        ([Target("m"), Target("n"), Target("m")], "targets.2.model"),
        ([Target("m", 0.0)], "targets.0.weight"),
        ([Target("m"), Target("n", -1.0)], "targets.1.weight"),
        ([Target("m", float("nan"))], "targets.0.weight"),
        ([Target("m", float("inf"))], "targets.0.weight"),
        ([Target("m", 1e300)], "targets.0.weight"),
    ],
)
def test_targets_that_cannot_be_are_refused_by_their_place(targets: list[Target], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        put_alias(actor=SYSTEM, name="fast", targets=targets)
    assert field in refused.value.fields
    assert not ModelAlias.objects.exists()


def test_an_alias_leads_to_no_alias_from_either_side_nor_to_itself() -> None:
    put("a", "m")
    with pytest.raises(Invalid, match="a is an alias itself"):
        put("b", "n", "a")
    with pytest.raises(Invalid, match="The alias a leads to it"):
        put("m", "n")
    with pytest.raises(Invalid, match="c is an alias itself"):
        put("c", "c")
    assert [alias.name for alias in selectors.aliases()] == ["a"]
    assert parse_config(current()[1]).aliases == (AliasConfig(name="a", targets=(ModelTarget(model="m"),)),)


def test_a_model_that_is_served_keeps_its_name(register: Callable[..., Instance]) -> None:
    serve(register, "taken")
    with pytest.raises(NameTaken, match="1 instance serves a model named taken"):
        put("taken", "m")
    serve(register, "resting", InstanceState.MAINTENANCE)
    put("resting", "m")


def test_an_alias_whose_name_is_served_by_now_can_still_be_changed(register: Callable[..., Instance]) -> None:
    put("fast", "m")
    serve(register, "fast")
    put("fast", "n")
    assert selectors.alias_named("fast").split == (Target("n"),)


@pytest.mark.django_db(transaction=True)
def test_of_two_that_would_make_a_chain_together_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would be right without the other: both have written before either is committed, where the database can."""
    both_have_written = Barrier(2)
    refused: list[str] = []

    def meet(**entry: Any) -> None:
        with suppress(BrokenBarrierError):  # SQLite has one writer at a time
            both_have_written.wait(0.5)
        audit.record(**entry)

    def try_to(name: str, model: str) -> None:
        try:
            put(name, model)
        except Invalid as error:
            refused.append(str(error))
        finally:
            connections.close_all()

    monkeypatch.setattr("controlplane.aliases.services.record", meet)
    threads = [Thread(target=try_to, args=pair) for pair in (("a", "b"), ("b", "c"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(refused) == 1
    assert ModelAlias.objects.count() == 1
