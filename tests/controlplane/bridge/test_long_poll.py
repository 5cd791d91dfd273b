"""The two views that router workers call."""

import asyncio

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tokens import create_token
from controlplane.bridge import views, watcher
from controlplane.bridge.drained import WAITED_FOR_S
from controlplane.bridge.publisher import newest_number
from controlplane.bridge.watcher import WATCHER
from controlplane.fleet.models import Instance
from controlplane.fleet.services import moves, registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.telemetry import worker_book
from controlplane.telemetry.hub import Hub
from router.config import parse_config
from router.core.instance import InstanceState
from router.snapshot import QuotaUse, Snapshot, dump_snapshot, parse_answer, parse_snapshot
from tests.controlplane.conftest import ACTOR
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = "/api/v1/router/config"
SNAPSHOTS = "/api/v1/router/snapshots"


@pytest.fixture
def headers(transactional_db: None) -> dict[str, str]:
    """What a router worker sends."""
    _, text = create_token(actor=SYSTEM, name="worker", scopes=[Scope.ROUTER])
    return {"Authorization": f"Bearer {text}"}


def register(name: str = "gpu-1") -> Instance:
    return registration.register(actor=ACTOR, spec=InstanceSpec(name=name, url="http://10.0.0.1:8000"))


async def get(headers: dict[str, str], wait: str = "0", known: int | None = None) -> object:
    tag = {} if known is None else {"If-None-Match": f'"{known}"'}
    return await AsyncClient().get(f"{CONFIG}?wait={wait}", headers=headers | tag)


async def test_the_newest_document_comes_with_its_revision_as_tag(headers: dict[str, str]) -> None:
    answer = await get(headers)
    document = parse_config(answer.content)
    assert answer.status_code == 200
    assert answer["ETag"] == f'"{document.revision}"'


async def test_who_has_the_newest_is_told_so(headers: dict[str, str]) -> None:
    known = await sync_to_async(newest_number)()
    answer = await get(headers, known=known)
    assert (answer.status_code, answer["ETag"], answer.content) == (304, f'"{known}"', b"")


async def test_a_change_in_this_process_ends_the_wait_at_once(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "CHECK_INTERVAL_S", 3_600)
    monkeypatch.setattr(views, "MAX_WAIT_S", 3_600)
    waiting = asyncio.Event()
    add = WATCHER.add
    monkeypatch.setattr(WATCHER, "add", lambda event: (add(event), waiting.set()))
    known = await sync_to_async(newest_number)()
    poll = asyncio.create_task(get(headers, wait="3600", known=known))
    await asyncio.wait_for(waiting.wait(), PATIENCE_S)
    await sync_to_async(register)()
    answer = await asyncio.wait_for(poll, PATIENCE_S)
    assert answer.status_code == 200
    assert parse_config(answer.content).revision == known + 1


async def test_a_change_of_another_process_ends_the_wait_soon(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WATCHER, "wake", lambda: None)
    monkeypatch.setattr(views, "MAX_WAIT_S", 3_600)
    known = await sync_to_async(newest_number)()
    poll = asyncio.create_task(get(headers, wait="3600", known=known))
    await sync_to_async(register)()
    assert (await asyncio.wait_for(poll, PATIENCE_S)).status_code == 200


@pytest.mark.parametrize("wait", ["-1", "61", "x", "nan", "inf"])
async def test_a_wait_that_cannot_be_is_refused(headers: dict[str, str], wait: str) -> None:
    answer = await get(headers, wait=wait)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == "wait"


async def test_who_has_no_token_or_another_scope_gets_nothing() -> None:
    assert (await get({})).status_code == 401
    assert (await get({"Authorization": "Bearer nonsense"})).status_code == 401
    _, text = await sync_to_async(create_token)(actor=SYSTEM, name="other", scopes=[Scope.READ])
    answer = await get({"Authorization": f"Bearer {text}"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def post(headers: dict[str, str], body: bytes) -> object:
    return await AsyncClient().post(SNAPSHOTS, body, content_type="application/json", headers=headers)


async def test_a_snapshot_reaches_the_telemetry(headers: dict[str, str], fresh_hub: Hub) -> None:
    answer = await post(headers, dump_snapshot(FakeWorker(name="router-7").step()))
    assert answer.status_code == 204
    assert [status.name for status in fresh_hub.worker_statuses()] == ["router-7"]


async def test_a_worker_is_told_what_the_others_have_let_in(headers: dict[str, str], fresh_hub: Hub) -> None:
    use = QuotaUse(tenant="acme", tokens=700, requests=3, concurrent=1)
    first, second = (FakeWorker(name=name).step() for name in ("router-0", "router-1"))
    await post(headers, dump_snapshot(msgspec.structs.replace(first, quotas=(use,), started_unix_s=5.0)))
    answer = await post(headers, dump_snapshot(msgspec.structs.replace(second, started_unix_s=4.0)))
    assert answer.status_code == 200
    (other,) = parse_answer(answer.content).others
    assert (other.worker, other.is_younger, other.quotas) == ("router-0@5.0", True, (use,))


async def test_the_older_of_two_processes_with_one_name_is_told_so(headers: dict[str, str], fresh_hub: Hub) -> None:
    younger, older = FakeWorker(name="router-0"), FakeWorker(name="router-0")
    younger.restart(unix_s=50.0)
    assert (await post(headers, dump_snapshot(younger.step()))).status_code == 204
    body = dump_snapshot(older.step())
    answer = await post(headers, body)
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert "--name" in answer.json()["detail"]
    again = dump_snapshot(younger.step())
    assert [(await post(headers, again)).status_code for _ in range(2)] == [204, 204], "an answer was lost: no conflict"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"worker": 1}'])
async def test_what_is_no_snapshot_is_refused(headers: dict[str, str], body: bytes, fresh_hub: Hub) -> None:
    answer = await post(headers, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert fresh_hub.worker_statuses() == ()


def seen(worker: str, instance: Instance, requests: int, state: InstanceState) -> bytes:
    """Return a snapshot of a worker that sees one instance so."""
    snapshot: Snapshot = FakeWorker(1, name=worker).step()
    sample = msgspec.structs.replace(
        snapshot.instances[0], id=str(instance.pk), name=instance.name, own_requests=requests, state=state
    )
    return dump_snapshot(msgspec.structs.replace(snapshot, instances=(sample,)))


@pytest.mark.parametrize(
    ("silent_s", "life"), [(WAITED_FOR_S - 5, InstanceState.DRAINING), (WAITED_FOR_S + 1, InstanceState.DRAINED)]
)
async def test_draining_waits_for_a_worker_that_is_silent_for_a_moment(
    headers: dict[str, str], fresh_hub: Hub, monkeypatch: pytest.MonkeyPatch, silent_s: float, life: InstanceState
) -> None:
    monkeypatch.setattr(worker_book, "LIVE_FOR_S", 3.0)
    instance = await sync_to_async(register)()
    await Instance.objects.filter(pk=instance.pk).aupdate(state=InstanceState.READY)
    await sync_to_async(moves.drain)(actor=ACTOR, instance_id=instance.pk)
    fresh_hub.accept(parse_snapshot(seen("a", instance, 2, InstanceState.DRAINING)), age_s=silent_s)
    await post(headers, seen("b", instance, 0, InstanceState.DRAINING))
    assert (await Instance.objects.aget(pk=instance.pk)).life is life


async def test_draining_ends_when_every_worker_knows_and_has_nothing_there(
    headers: dict[str, str], fresh_hub: Hub
) -> None:
    instance = await sync_to_async(register)()
    await Instance.objects.filter(pk=instance.pk).aupdate(state=InstanceState.READY)
    await sync_to_async(moves.drain)(actor=ACTOR, instance_id=instance.pk)

    async def state_after(body: bytes) -> InstanceState:
        others = {heard.snapshot.worker for heard in fresh_hub._workers.heard()} - {parse_snapshot(body).worker}
        assert (await post(headers, body)).status_code == (200 if others else 204)
        return (await Instance.objects.aget(pk=instance.pk)).life

    draining, ready = InstanceState.DRAINING, InstanceState.READY
    assert await state_after(seen("a", instance, 0, ready)) is draining  # has not heard of it yet
    fresh_hub._workers._heard.clear()
    assert await state_after(seen("a", instance, 2, draining)) is draining
    assert await state_after(seen("b", instance, 0, draining)) is draining  # a still has two
    fresh_hub._workers._heard.clear()
    assert await state_after(seen("a", instance, 0, draining)) is InstanceState.DRAINED
