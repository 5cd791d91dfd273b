"""A whole worker: its configuration in, its snapshots out, its start without a control plane, its stop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from router.config import dump_config
from router.core.policy import Policy
from router.proxy.limits import Limits
from router.proxy.worker import Worker, WorkerSettings
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, answers_json, chunk, hangs
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Proxy, chat_body, document, request_bytes


@asynccontextmanager
async def working(**settings: Any) -> AsyncIterator[Proxy]:
    """Run a worker for the length of a block."""
    limits = settings.pop("limits", Limits(drain_s=1.0))
    worker = Worker(WorkerSettings(port=0, limits=limits, **settings), asyncio.get_running_loop())
    await worker.start()
    try:
        yield Proxy(worker.plane, worker.server, worker.address[1], [])
    finally:
        await worker.stop()


async def until_revision(proxy: Proxy, revision: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while proxy.plane.table is None or proxy.plane.table.revision != revision:
            await asyncio.sleep(0.002)


async def test_it_is_ready_once_a_configuration_came_and_follows_changes_at_once() -> None:
    async with (
        FakeEngine() as one,
        FakeEngine() as two,
        FakeControlPlane() as control,
        working(control_url=control.url, token="secret") as proxy,
        proxy.client() as client,
    ):
        assert (await client.get("/livez")).status == 200
        assert (await client.get("/readyz")).status == 503
        refused = await proxy.chat()
        assert (refused.status, refused.code) == (503, "no_instance_available")
        control.publish(document([one], 1))
        await until_revision(proxy, 1)
        assert (await client.get("/readyz")).status == 200
        assert (await proxy.chat()).status == 200
        control.publish(document([two], 2))
        await until_revision(proxy, 2)
        assert (await proxy.chat()).status == 200
        assert [len([r for r in e.requests if r.path == "/v1/chat/completions"]) for e in (one, two)] == [1, 1]


async def test_an_invalid_document_is_refused_with_its_reasons_and_the_last_good_one_stays(tmp_path: Path) -> None:
    async with FakeEngine() as engine, FakeControlPlane() as control:
        control.publish(document([engine], 1))
        async with working(control_url=control.url, token="secret", state_dir=tmp_path) as proxy:
            await until_revision(proxy, 1)
            control.publish_bytes(b'{"revision": 2, "workloads": []}', '"2"')
            async with asyncio.timeout(PATIENCE_S):
                while proxy.plane.config_error is None:
                    await asyncio.sleep(0.002)
            assert "no workload named default" in proxy.plane.config_error
            assert (await proxy.chat()).status == 200
            control.snapshot_came.clear()
            await control.snapshot_came.wait()
            assert control.snapshots[-1].config_revision == 1
            assert "no workload named default" in str(control.snapshots[-1].config_error)
            control.publish(document([engine], 3))
            await until_revision(proxy, 3)
            assert proxy.plane.config_error is None
        assert json.loads((tmp_path / "config.json").read_bytes())["revision"] == 3


async def test_it_starts_from_the_last_good_document_when_the_control_plane_is_down(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        async with FakeControlPlane() as control:
            control.publish(document([engine], 7))
            async with working(control_url=control.url, token="secret", state_dir=tmp_path) as proxy:
                await until_revision(proxy, 7)
        async with working(control_url=control.url, token="secret", state_dir=tmp_path) as proxy:
            assert proxy.plane.table is not None
            assert proxy.plane.table.revision == 7
            assert (await proxy.chat()).status == 200
            control.body = b""
            await control.start()
            control.publish(document([engine], 8))
            await until_revision(proxy, 8)
        await control.stop()


async def test_a_damaged_last_good_document_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b'{"revision": 1, "inst')
    async with FakeControlPlane() as control, working(control_url=control.url, state_dir=tmp_path) as proxy:
        assert proxy.plane.table is None
        assert proxy.plane.config_error


async def test_it_runs_alone_from_a_file_and_follows_it(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    async with FakeEngine() as engine:
        path.write_bytes(dump_config(document([engine], 1)))
        async with working(config_file=path) as proxy:
            await until_revision(proxy, 1)
            assert (await proxy.chat()).status == 200
            path.write_bytes(dump_config(document([], 2)))
            await until_revision(proxy, 2)
            assert (await proxy.chat()).status == 503


async def test_snapshots_say_what_happened_and_lose_nothing_when_the_control_plane_is_away() -> None:
    usage = b'{"usage":{"prompt_tokens":120,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":16}}}'
    async with FakeEngine(answers_json(usage)) as engine, FakeControlPlane() as control:
        control.publish(document([engine], 1))
        async with working(control_url=control.url, token="secret", name="router-7") as proxy:
            await until_revision(proxy, 1)
            control.refusing = True
            for _ in range(3):
                await proxy.chat("x" * 400)
            await asyncio.sleep(0.4)
            control.refusing = False
            await proxy.chat("x" * 400)
            async with asyncio.timeout(PATIENCE_S):
                while sum(w.requests for s in control.snapshots for w in s.workloads) < 4:
                    control.snapshot_came.clear()
                    await control.snapshot_came.wait()
            last = control.snapshots[-1]
            assert (last.worker, last.config_revision, last.in_flight) == ("router-7", 1, 0)
            instances = [instance for s in control.snapshots for instance in s.instances]
            assert sum(i.requests for i in instances) == 4
            assert sum(i.reported_hit_tokens for i in instances) == 64
            assert sum(i.reported_prompt_tokens for i in instances) == 480
            assert sum(sum(i.score.values()) for i in instances) == 4
            assert sum(w.output_tokens for s in control.snapshots for w in s.workloads) == 20
            assert sum(len(s.chosen) for s in control.snapshots) == 4
            decision = next(s.last_decision for s in reversed(control.snapshots) if s.last_decision is not None)
            assert decision.chosen == "e0"
            assert decision.candidates[0].score == decision.candidates[0].p_token * decision.candidates[0].bs
            assert [s.seq for s in control.snapshots] == sorted({s.seq for s in control.snapshots})


async def test_a_wrong_token_is_survived() -> None:
    async with FakeControlPlane() as control, working(control_url=control.url, token="wrong") as proxy:
        async with asyncio.timeout(PATIENCE_S):
            while len(control.requests) < 3:
                await asyncio.sleep(0.01)
        assert not proxy.plane.ready


async def test_stopping_lets_streams_finish_and_takes_nobody_new() -> None:
    proceed = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        peer.send(STREAM_HEAD + chunk(b"data: 1\n\n"))
        await proceed.wait()
        peer.send(chunk(b"data: [DONE]\n\n") + LAST_CHUNK)

    async with FakeEngine() as engine, FakeControlPlane() as control:
        control.publish(document([engine], 1))
        worker = Worker(
            WorkerSettings(port=0, control_url=control.url, token="secret", limits=Limits(drain_s=30.0)),
            asyncio.get_running_loop(),
        )
        await worker.start()
        proxy = Proxy(worker.plane, worker.server, worker.address[1], [])
        await until_revision(proxy, 1)
        engine.default = script
        async with proxy.client() as streaming, proxy.client() as idle:
            await idle.get("/livez")
            streaming.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
            await streaming.until(b"data: 1\n\n")
            stopping = asyncio.create_task(worker.stop())
            assert await idle.rest() == b""
            with pytest.raises(OSError, match=r".*"):
                await asyncio.open_connection("127.0.0.1", proxy.port)
            proceed.set()
            assert (await streaming.rest()).endswith(chunk(b"data: [DONE]\n\n") + LAST_CHUNK)
            await stopping
        assert not any(proxy.counters.values())


async def test_stopping_does_not_wait_for_ever() -> None:
    async with FakeEngine(hangs()) as engine, FakeControlPlane() as control:
        control.publish(document([engine], 1, policies=(Policy(),)))
        worker = Worker(
            WorkerSettings(port=0, control_url=control.url, token="secret", limits=Limits(drain_s=0.05)),
            asyncio.get_running_loop(),
        )
        await worker.start()
        proxy = Proxy(worker.plane, worker.server, worker.address[1], [])
        await until_revision(proxy, 1)
        async with proxy.client() as client:
            client.send(request_bytes(json.dumps(chat_body()).encode()))
            while not proxy.plane.in_flight:
                await asyncio.sleep(0)
            await worker.stop()
            assert not any(proxy.counters.values())
