"""Orders to routers: claimed a few at once, put off, given up; what answers mean; who opted out; over REST."""

import json
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.accounts.access import Scope
from controlplane.accounts.models import AuditEntry, Tenant
from controlplane.bridge.publisher import current
from controlplane.errors import IllegalTransition
from controlplane.fleet.models import Instance
from controlplane.preloading import services
from controlplane.preloading.lifecycle import TRANSITIONS, PreloadEvent, PreloadState, next_state
from controlplane.preloading.models import Preload, Reason
from controlplane.preloading.planning import Target, Wish
from controlplane.preloading.sending import order_key, read_answer, send_due
from controlplane.preloading.services import claim, make_plans, settle
from controlplane.preloading.tasks import plan_preloads
from router.config import parse_config
from router.core.instance import InstanceState
from tests.controlplane.own_thread import in_own_thread
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
CLASS = "3f2a" * 4
USAGE = {"usage": {"prompt_tokens": 700, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 16}}}


@pytest.fixture
def ready(register: Callable[..., Instance]) -> Instance:
    """An instance in rotation."""
    made = register("gpu-1")
    Instance.objects.update(state=InstanceState.WARMING)
    made.refresh_from_db()
    return made


def planned(instance: Instance, *classes: str) -> None:
    """Plan preloads for an instance."""
    target = Target(str(instance.pk), instance.name, instance.life, instance.epoch)
    make_plans(wishes=[Wish(class_id, target, Reason.JOINED) for class_id in classes or (CLASS,)])


async def sent(receiver: Receiver, settings: Any) -> Preload:
    """Send what is due to a router; return the only preload as it then is."""
    settings.ROUTER_URL = receiver.url.removesuffix("/hook")
    await in_own_thread(send_due)
    return await Preload.objects.aget()


@pytest.mark.parametrize("state", PreloadState)
@pytest.mark.parametrize("event", PreloadEvent)
def test_every_pair_of_the_table(state: PreloadState, event: PreloadEvent) -> None:
    if state is PreloadState.PLANNED:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition):
            next_state(state, event)


async def test_a_router_is_told_what_to_bring_where(ready: Instance, settings: Any) -> None:
    await sync_to_async(planned)(ready)
    async with Receiver(body=json.dumps(USAGE).encode()) as receiver:
        row = await sent(receiver, settings)
    (got,) = receiver.got
    assert got.path == "/-/preload"
    assert json.loads(got.body) == {"class_id": CLASS, "instance_id": str(ready.pk)}
    assert got.headers["authorization"] == f"Bearer {order_key()}"
    assert (row.life, row.prompt_tokens, row.cached_tokens) == (PreloadState.DONE, 700, 16)
    assert row.ended_at is not None


def test_routers_are_told_the_digest_of_the_key_and_never_the_key(db: None) -> None:
    _, body = current()
    rule = parse_config(body).preload
    assert rule is not None
    assert rule.key_digest == sha256(order_key().encode()).hexdigest()
    assert order_key().encode() not in body


@pytest.mark.parametrize(
    ("status", "body", "event"),
    [
        (200, b"not json", PreloadEvent.ARRIVED),
        (404, b'{"error": {"code": "unknown_instance"}}', PreloadEvent.POINTLESS),
        (404, b'{"error": {"code": "no_text"}}', PreloadEvent.PUT_OFF),
        (409, b'{"error": {"code": "held"}}', PreloadEvent.POINTLESS),
        (503, b"", PreloadEvent.PUT_OFF),
        (401, b"[]", PreloadEvent.PUT_OFF),
        (502, b'{"error": 1}', PreloadEvent.PUT_OFF),
    ],
)
def test_what_each_answer_means(status: int, body: bytes, event: PreloadEvent) -> None:
    assert read_answer(status, body).event is event


async def test_a_router_that_is_away_is_tried_again(ready: Instance, settings: Any) -> None:
    await sync_to_async(planned)(ready)
    settings.ROUTER_URL = "http://127.0.0.1:1"
    tried_at = timezone.now()
    await in_own_thread(send_due)
    row = await Preload.objects.aget()
    assert row.life is PreloadState.PLANNED
    assert row.due_at > tried_at
    assert "Cannot talk to the router" in row.detail


async def test_an_instance_that_began_anew_is_not_bothered(ready: Instance, settings: Any) -> None:
    await sync_to_async(planned)(ready)
    await Instance.objects.aupdate(epoch=2)
    async with Receiver() as receiver:
        row = await sent(receiver, settings)
        assert receiver.got == []
    assert row.life is PreloadState.SKIPPED


def test_only_a_few_are_under_way_at_once(ready: Instance) -> None:
    planned(ready, *(f"{number:016x}" for number in range(6)))
    first = claim()
    assert len(first) == services.AT_ONCE
    assert claim() == []
    assert settle(row=first[0], event=PreloadEvent.ARRIVED, detail="prefilled")
    assert len(claim()) == 1


def test_a_claim_of_a_killed_process_is_taken_over(ready: Instance) -> None:
    planned(ready)
    (first,) = claim()
    (second,) = claim(now=timezone.now() + services.LEASE + timedelta(seconds=1))
    assert second.pk == first.pk
    assert not settle(row=first, event=PreloadEvent.ARRIVED, detail="too late")
    assert settle(row=second, event=PreloadEvent.ARRIVED, detail="prefilled")


def test_what_is_put_off_too_often_is_given_up(ready: Instance) -> None:
    planned(ready)
    Preload.objects.update(attempts=services.MOST_ATTEMPTS - 1)
    (row,) = claim()
    settle(row=row, event=PreloadEvent.PUT_OFF, detail="busy")
    assert Preload.objects.get().life is PreloadState.FAILED


def test_planning_twice_plans_once(ready: Instance) -> None:
    planned(ready)
    planned(ready)
    assert Preload.objects.count() == 1


def test_nothing_is_planned_where_it_is_not_allowed(ready: Instance, settings: Any) -> None:
    settings.PRELOAD = False
    plan_preloads()
    assert parse_config(current()[1]).preload is None


def test_a_tenant_opts_out_and_routers_are_told(caller: Callable[..., APIClient]) -> None:
    Tenant.objects.create(name="acme")
    client = caller(Scope.READ, Scope.TENANTS)
    path = "/api/v1/preloads/tenants/acme/"
    assert client.get(path).json() == {"keep_prefixes": True}
    assert client.put(path, {"keep_prefixes": False}).json() == {"keep_prefixes": False}
    (tenant,) = parse_config(current()[1]).tenants
    assert tenant.keep_prefixes is False
    assert AuditEntry.objects.filter(action="tenant.preloading").count() == 1
    client.put(path, {"keep_prefixes": True})
    assert parse_config(current()[1]).tenants[0].keep_prefixes is True
    assert client.put("/api/v1/preloads/tenants/nobody/", {"keep_prefixes": True}).status_code == 404
    assert caller(Scope.READ).put(path, {"keep_prefixes": True}).status_code == 403


def test_progress_is_visible(ready: Instance, caller: Callable[..., APIClient]) -> None:
    planned(ready)
    client = caller(Scope.READ)
    (row,) = client.get("/api/v1/preloads/?state=planned&instance=gpu-1").json()["results"]
    assert (row["class_id"], row["instance"], row["reason"], row["attempts"]) == (CLASS, "gpu-1", "joined", 0)
    assert client.get("/api/v1/preloads/?state=done").json()["count"] == 0
    assert client.get("/api/v1/preloads/?state=nonsense").status_code == 400
