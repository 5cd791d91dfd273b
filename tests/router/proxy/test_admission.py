"""Admission: limits of workloads, a full fleet, fair turns, bounded waits."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.config import AdmissionConfig, ConfigError, WorkloadConfig, dump_config, parse_config
from router.proxy.batch import Batch, Batched
from router.proxy.exposition import expose
from router.proxy.fair_queue import FairQueue
from router.proxy.snapshots import SnapshotTimes, WorkerIdentity, build_snapshot
from router.snapshot import Snapshot
from tests.fakes.engine import FakeEngine, Peer, Received, http
from tests.router.proxy.harness import Proxy, chat_body, document, proxying


class Gated(FakeEngine):
    """Answers when it is told to, one request a release; ``most`` is the most that it ever had at once."""

    def __init__(self) -> None:
        super().__init__(self._serve)
        self.gate = asyncio.Semaphore(0)
        self.here = 0
        self.most = 0
        self.served: list[str] = []

    async def _serve(self, request: Received, peer: Peer) -> None:
        self.here += 1
        self.most = max(self.most, self.here)
        await self.gate.acquire()
        self.here -= 1
        self.served.append(request.fields.get("x-from", ""))
        peer.send(http("200 OK", b"{}"))


def admit(proxy: Proxy, limit: int | None = None, **rule: Any) -> None:
    """Put admission rules into force; ``limit`` is that of the default workload."""
    workloads = (WorkloadConfig(name="default", policy="default", concurrent=limit),)
    assert proxy.plane.table is not None
    plain = document(proxy.engines, proxy.plane.table.revision + 1)
    proxy.plane.apply(replace(plain, admission=AdmissionConfig(**rule), workloads=workloads))


def snapshot(proxy: Proxy) -> Snapshot:
    """Return what the worker would tell its control plane now."""
    times = SnapshotTimes(0.0, proxy.plane.loop.time(), 0.25)
    return build_snapshot(proxy.plane, proxy.plane.stats.take(), WorkerIdentity("w", 0.0), 1, times)


async def until(proxy: Proxy, *, queued: int) -> None:
    while proxy.plane.admission.queued != queued:
        await asyncio.sleep(0)


@pytest.mark.parametrize("rule", [{"limit": 3}, {"instance_requests": 3}], ids=["workload", "fleet"])
async def test_no_more_than_allowed_are_placed_and_all_are_served(rule: dict[str, int]) -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, **rule)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(12)]
        await until(proxy, queued=9)
        assert proxy.counters["own_requests"] == 3
        for _ in range(12):
            engine.gate.release()
        assert {answer.status for answer in await asyncio.gather(*asking)} == {200}
        assert engine.most == 3
        assert not any(proxy.counters.values())
        assert not proxy.plane.admission.inside("default")


async def test_a_full_queue_refuses_with_its_reason() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1, queue_requests=2)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(3)]
        await until(proxy, queued=2)
        answer = await proxy.chat()
        assert (answer.status, answer.code, answer.fields["retry-after"]) == (503, "queue_full", "1")
        for _ in range(3):
            engine.gate.release()
        await asyncio.gather(*asking)
        proxy.plane.stats.roll()
        assert proxy.plane.stats.totals.workload("default").refused == {"queue_full": 1}


async def test_a_snapshot_tells_who_is_inside_who_waits_and_who_was_refused() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1, queue_requests=2)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(3)]
        await until(proxy, queued=2)
        await proxy.chat()
        (told,) = snapshot(proxy).workloads
        assert (told.inside, told.queued, told.refused) == (1, 2, {"queue_full": 1})
        for _ in range(3):
            engine.gate.release()
        await asyncio.gather(*asking)
        (told,) = snapshot(proxy).workloads
        assert (told.inside, told.queued, told.refused) == (0, 0, {})
        admit(proxy)
        assert snapshot(proxy).workloads[0].inside is None, "nobody counts where there is no limit"


async def test_metrics_tell_refusals_by_workload_and_reason() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1, queue_requests=1)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(2)]
        await until(proxy, queued=1)
        await proxy.chat()
        series = b'pointsman_queue_refused_total{workload="default",reason="queue_full"} 1'
        assert series in expose(proxy.plane)
        for _ in range(2):
            engine.gate.release()
        await asyncio.gather(*asking)


async def test_a_wait_that_is_too_long_is_refused() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1)
        serving = asyncio.create_task(proxy.chat())
        while not engine.here:
            await asyncio.sleep(0)
        waiting = asyncio.create_task(proxy.chat())
        await until(proxy, queued=1)
        proxy.plane.sweep(proxy.plane.loop.time() + proxy.plane.admission.wait_s + 1)
        answer = await waiting
        assert (answer.status, answer.code) == (503, "queue_timeout")
        engine.gate.release()
        assert (await serving).status == 200
        assert not any(proxy.counters.values())


async def test_a_client_that_leaves_the_queue_leaves_nothing_behind() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1)
        serving = asyncio.create_task(proxy.chat())
        while not engine.here:
            await asyncio.sleep(0)
        leaving = [asyncio.create_task(proxy.chat()) for _ in range(5)]
        await until(proxy, queued=5)
        for task in leaving:
            task.cancel()
        await until(proxy, queued=0)
        engine.gate.release()
        assert (await serving).status == 200
        engine.gate.release()
        assert (await proxy.chat()).status == 200
        assert len(engine.requests) == 2
        assert not any(proxy.counters.values())


async def test_a_changed_limit_lets_those_who_wait_in_at_once() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(4)]
        await until(proxy, queued=3)
        admit(proxy)
        await until(proxy, queued=0)
        while engine.here != 4:
            await asyncio.sleep(0)
        for _ in range(4):
            engine.gate.release()
        await asyncio.gather(*asking)


async def test_one_busy_client_does_not_keep_another_workload_out() -> None:
    async with Gated() as engine, proxying(engine) as proxy:
        workloads = tuple(WorkloadConfig(name=n, policy="default") for n in ("default", "other"))
        plain = document(proxy.engines, 2)
        proxy.plane.apply(replace(plain, admission=AdmissionConfig(instance_requests=1), workloads=workloads))
        first = asyncio.create_task(proxy.chat())
        while not engine.here:
            await asyncio.sleep(0)
        many = [asyncio.create_task(proxy.post(chat_body(), X_From="many")) for _ in range(6)]
        await until(proxy, queued=6)
        one = asyncio.create_task(proxy.post(chat_body(), X_From="one", X_Pointsman_Workload="other"))
        await until(proxy, queued=7)
        for _ in range(8):
            engine.gate.release()
        await asyncio.gather(first, one, *many)
        assert engine.served.index("one") <= 2


def test_tenants_get_equal_shares_of_tokens() -> None:
    queue = FairQueue[int]()
    for number in range(300):
        queue.push("heavy", 1000, number)
    for number in range(300, 600):
        queue.push("light", 100, number)
    let_through: Counter[str] = Counter()
    for _ in range(220):
        item = queue.pop()
        assert item is not None
        let_through["heavy" if item < 300 else "light"] += 1
    assert let_through == {"heavy": 20, "light": 200}


@given(st.lists(st.tuples(st.sampled_from("pddo"), st.integers(0, 3), st.integers(1, 500)), max_size=200))
def test_a_queue_loses_nothing_doubles_nothing_and_keeps_each_tenants_order(
    events: list[tuple[str, int, int]],
) -> None:
    queue = FairQueue[int]()
    waiting: dict[int, int] = {}
    for number, (kind, tenant, tokens) in enumerate(events):
        if kind == "p":
            queue.push(str(tenant), tokens, number)
            waiting[number] = tenant
        elif kind == "d" and waiting:
            gone = sorted(waiting)[tokens % len(waiting)]
            queue.discard(gone)
            del waiting[gone]
        elif kind == "o":
            item = queue.pop()
            if item is None:
                assert not waiting
            else:
                owner = waiting.pop(item)
                assert not [other for other, its in waiting.items() if its == owner and other < item]
        assert len(queue) == len(waiting)
        for owner in range(4):
            assert queue.length_of(str(owner)) == list(waiting.values()).count(owner)


@pytest.mark.parametrize(
    "rule",
    [
        {"instance_requests": 0},
        {"queue_requests": 0},
        {"queue_wait_s": 0.0},
        {"queue_wait_s": float("inf")},
        {"batch_window_ms": 11.0},
    ],
)
def test_rules_that_mean_nothing_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        parse_config(dump_config(replace(document([]), admission=AdmissionConfig(**rule))))


def hold_window(proxy: Proxy, requests: int) -> None:
    """Let the window end when so many requests are in it, and not by the clock."""

    class Held(Batch):
        def add(self, request: Batched) -> None:
            super().add(request)
            if len(self) == requests:
                self.flush()

    held = Held(proxy.plane.loop.call_later)
    held.window_s = 3600
    proxy.plane.batch = held


async def test_a_window_ends_by_itself() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        admit(proxy, batch_window_ms=5)
        began_s = proxy.plane.loop.time()
        assert (await proxy.chat()).status == 200
        assert proxy.plane.loop.time() - began_s >= 0.004  # a loop's clock counts whole milliseconds
        assert not len(proxy.plane.batch)


async def test_in_a_window_a_cold_request_does_not_take_the_place_of_a_warm_one() -> None:
    engines = [FakeEngine(), FakeEngine()]
    prefix = "a long prefix that one of the engines has seen before " * 60
    async with engines[0], engines[1], proxying(*engines) as proxy:
        home = (await proxy.chat(prefix)).fields["x-pointsman-instance"]
        other = (await proxy.chat("something else entirely " * 200)).fields["x-pointsman-instance"]
        assert home != other
        hold_window(proxy, requests=3)
        cold = [asyncio.create_task(proxy.chat(f"cold {n} " + "x" * 9000)) for n in range(2)]
        while len(proxy.plane.batch) < 2:
            await asyncio.sleep(0)
        warm = asyncio.create_task(proxy.chat(prefix + "and a new question"))
        assert (await warm).fields["x-pointsman-instance"] == home
        assert {answer.status for answer in await asyncio.gather(*cold)} == {200}
        assert not any(proxy.counters.values())


async def test_a_client_that_leaves_during_the_window_is_never_placed() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        hold_window(proxy, requests=2)
        async with proxy.client() as client:
            asking = asyncio.create_task(client.post(chat_body()))
            while not len(proxy.plane.batch):
                await asyncio.sleep(0)
            client.reset()
            await proxy.settle()
            asking.cancel()
        proxy.plane.batch.flush()
        assert not any(proxy.counters.values())
        assert engine.requests == []
        assert proxy.outcomes() == {"cancelled": 1}
