"""Load that an engine pushes: added up over its ranks, newer than a poll, and gone with the instance."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import orjson
import pytest
import zmq

from router.kvevents.load_push import LoadStat
from router.kvevents.source import LoadSource
from router.proxy.events import pushed_load
from router.proxy.events.pushed_load import PushedLoad
from router.proxy.link import Link
from router.state.instance import Instance
from router.state.report import EngineReport
from tests.fakes.engine import FakeEngine, Peer, Received, http
from tests.router.engine.serving import until
from tests.router.proxy.events.stage import staged
from tests.router.proxy.harness import proxying

RANKS = (LoadSource("tcp://127.0.0.1:9", rank=0), LoadSource("tcp://127.0.0.1:10", rank=1))
STAT = LoadStat(running=3, waiting=2, tokens=400, max_tokens=1000, waiting_uncached_tokens=512)


@asynccontextmanager
async def pushed(*sources: LoadSource) -> AsyncIterator[tuple[PushedLoad, Link]]:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        load = PushedLoad(proxy.plane)
        link = proxy.plane.links[0]
        load.follow(link, sources)
        try:
            yield load, link
        finally:
            await load.close()


async def reported(instance: Instance) -> EngineReport:
    await until(lambda: instance.reconciled is not None)
    assert instance.reconciled is not None
    return instance.reconciled.report


async def test_ranks_are_added_up_once_all_have_spoken() -> None:
    async with pushed(*RANKS) as (load, link):
        instance = link.instance
        load.load_reported(instance.config.id, 0, STAT)
        await asyncio.sleep(2 * pushed_load.SETTLE_S)
        assert instance.reconciled is None
        load.load_reported(instance.config.id, 1, msgspec.structs.replace(STAT, tokens=900, rank=1))
        report = await reported(instance)
        assert report == EngineReport(running=6, waiting=4, kv_use=0.9, queued_prefill_tokens=1024)
        assert (instance.view.bs, instance.view.queued_prefill_tokens) == (10, 1024)
        assert load.age_s(link) is not None


async def test_queued_tokens_are_unknown_unless_every_rank_tells_them() -> None:
    async with pushed(*RANKS) as (load, link):
        load.load_reported(link.instance.config.id, 0, STAT)
        load.load_reported(link.instance.config.id, 1, msgspec.structs.replace(STAT, waiting_uncached_tokens=None))
        assert (await reported(link.instance)).queued_prefill_tokens is None


async def test_a_poll_adds_what_is_not_pushed_and_does_not_undo_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = EngineReport(running=1, waiting=0, kv_use=0.1, kv_block_tokens=32, kv_capacity_tokens=64_000)
    async with pushed(RANKS[0]) as (load, link):
        assert load.complete(link, polled, 4) == (polled, 4)
        load.load_reported(link.instance.config.id, 0, STAT)
        await reported(link.instance)
        report, _ = load.complete(link, polled, 4)
        assert (report.running, report.waiting, report.queued_prefill_tokens) == (3, 2, 512)
        assert (report.kv_use, report.kv_block_tokens, report.kv_capacity_tokens) == (0.4, 32, 64_000)
        monkeypatch.setattr(pushed_load, "FRESH_S", -1.0)
        assert load.complete(link, polled, 4) == (polled, 4)


async def test_own_bookings_and_pushes_are_reconciled_by_the_larger() -> None:
    async with pushed(RANKS[0]) as (load, link):
        link.instance.move(requests=9)
        load.load_reported(link.instance.config.id, 0, STAT)
        await reported(link.instance)
        assert link.instance.view.bs == 9
        link.instance.move(requests=-9)


async def test_the_measured_prefill_rate_is_kept() -> None:
    async with pushed(RANKS[0]) as (load, link):
        totals = [(1000, 100_000), (5000, 600_000), (9000, 1_100_000)]
        for tokens, busy_us in totals:
            stat = msgspec.structs.replace(STAT, prefill_uncached_total=tokens, prefill_busy_us_total=busy_us)
            load.load_reported(link.instance.config.id, 0, stat)
        assert load.prefill_rate(link) == pytest.approx(8000)


async def test_nothing_is_heard_of_an_instance_that_is_gone() -> None:
    async with pushed(RANKS[0]) as (load, link):
        load.load_reported(link.instance.config.id, 0, STAT)
        load.forget(link.instance.config.id)
        await asyncio.sleep(2 * pushed_load.SETTLE_S)
        assert (link.instance.reconciled, load.age_s(link)) == (None, None)


@pytest.fixture
def publisher() -> Iterator[tuple["zmq.Socket[bytes]", int]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.PUB)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    yield socket, port
    context.destroy(linger=0)


async def test_an_engine_that_pushes_its_load_is_found_and_heard(publisher: Any) -> None:
    socket, port = publisher
    info = {"kv_events": {"publisher": "zmq", "endpoint_port_base": port, "load_endpoint_port_base": port}}

    async def serve(request: Received, peer: Peer) -> None:
        found = request.path == "/server_info"
        peer.send(http("200 OK" if found else "404 Not Found", orjson.dumps(info)))

    async with FakeEngine(serve) as engine, staged(engine) as stage:  # type: ignore[arg-type]
        instance = next(iter(stage.proxy.plane.fleet))
        payload = msgspec.msgpack.encode(STAT)

        def heard() -> bool:
            socket.send_multipart([b"load", bytes(8), payload])
            return instance.reconciled is not None

        await until(heard)
        assert instance.view.queued_prefill_tokens == 512
