"""What web processes tell one another over Redis, and what each does while Redis is away."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
import redis
from msgspec.structs import replace

from controlplane.telemetry import worker_book
from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.sharing import mirror, stream
from controlplane.telemetry.sharing.alone import Alone
from controlplane.telemetry.sharing.mirror import Mirror
from controlplane.telemetry.sharing.stream import Stream
from router.snapshot import Snapshot, dump_snapshot
from tests.fakes.relay import Relay
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S
from tests.redis_server import redis_url


@pytest.fixture(autouse=True)
def nobody_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was heard once is heard, however long a slow machine takes for the rest."""
    monkeypatch.setattr(worker_book, "LIVE_FOR_S", worker_book.FORGET_AFTER_S)


@pytest.fixture
def redis_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine Redis is no fault."""
    for module, limit in ((stream, "ANSWER_S"), (mirror, "ANSWER_S"), (mirror, "START_S"), (mirror, "WHOLE_FOR_S")):
        monkeypatch.setattr(module, limit, PATIENCE_S)


class WebProcess:
    """A hub that shares, as one web process has it."""

    def __init__(self, name: str, url: str, namespace: str) -> None:
        self.hub = Hub(SystemClock())
        self.name = name
        self.mirror = Mirror(lambda: Stream(url, namespace), SystemClock(), self._take, f"id-{name} {name}".encode())

    async def deliver(self, snapshot: Snapshot) -> bool:
        """Take a snapshot as the view does; return whether it was counted here."""
        return await self.mirror.offer(snapshot, dump_snapshot(snapshot)) and self.hub.accept(snapshot)

    def requests(self) -> int:
        return self.hub.frame().headline.requests

    def heard(self) -> dict[str, str]:
        return {status.name: status.heard_by for status in self.hub.worker_statuses() if status.live}

    def revisions(self) -> dict[str, int]:
        return {status.name: status.config_revision for status in self.hub.worker_statuses()}

    def _take(self, snapshot: Snapshot, heard_by: str, age_s: float) -> None:
        self.hub.accept(snapshot, heard_by=heard_by, age_s=age_s)


async def until(ask: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not ask():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S:.0f} s: {what}") from None


@asynccontextmanager
async def processes(url: str, *names: str, namespace: str = "") -> AsyncIterator[list[WebProcess]]:
    """Run web processes that share a namespace of their own."""
    space = namespace or f"{{test:{secrets.token_hex(8)}}}"
    made = [WebProcess(name, url, space) for name in names]
    try:
        for one in made:
            await one.mirror.start()
        yield made
    finally:
        for one in made:
            await one.mirror.stop()


def requests_of(snapshot: Snapshot) -> int:
    return sum(instance.requests for instance in snapshot.instances)


@pytest.mark.usefixtures("redis_may_be_slow")
async def test_every_process_shows_what_any_of_them_hears() -> None:
    async with processes(redis_url(), "a", "b") as (a, b):
        one, two = FakeWorker(8, 200.0, name="one"), FakeWorker(8, 200.0, name="two")
        told = 0
        for _ in range(20):
            for worker, process in ((one, a), (two, b)):
                snapshot = worker.step()
                told += requests_of(snapshot)
                assert await process.deliver(snapshot)
        await until(lambda: a.requests() == b.requests() == told, "both have counted every request")
        assert a.heard().keys() == b.heard().keys() == {"one", "two"}
        assert b.heard()["one"] == "a"
        for mine, other in zip(a.hub.frame().instances, b.hub.frame().instances, strict=True):
            assert (mine.name, mine.bs, mine.requests, mine.score_counts) == (
                other.name,
                other.bs,
                other.requests,
                other.score_counts,
            )
        wanted = b.hub.decisions.recent(1)[0].request_id
        assert a.hub.decisions.find(wanted) == b.hub.decisions.find(wanted)


@pytest.mark.usefixtures("redis_may_be_slow")
async def test_a_snapshot_that_reaches_two_processes_is_counted_by_one() -> None:
    async with processes(redis_url(), "a", "b") as (a, b):
        worker = FakeWorker(4, 200.0)
        first = worker.step()
        assert await a.deliver(first)
        assert not await b.deliver(first), "it was sent again, because the answer of a was lost"
        second = worker.step()
        assert await b.deliver(second), "the worker has moved to b"
        assert not await a.deliver(first), "and a late request of before changes nothing"
        await until(lambda: a.heard() == {worker.name: "b"}, "a knows that its worker has moved")
        assert a.requests() == b.requests() == requests_of(first) + requests_of(second)
        worker.restart(unix_s=50.0)
        assert await a.deliver(worker.step()), "a restarted worker counts from one again"


@pytest.mark.usefixtures("redis_may_be_slow")
async def test_a_process_that_starts_knows_the_last_minute_and_how_old_it_is() -> None:
    url, space = redis_url(), f"{{test:{secrets.token_hex(8)}}}"
    async with processes(url, "a", namespace=space) as (a,):
        gone, alive = FakeWorker(4, 100.0, name="gone"), FakeWorker(4, 100.0, name="alive")
        await a.deliver(gone.step())
        await asyncio.sleep(0.5)
        for _ in range(40):
            await a.deliver(alive.step())
        async with processes(url, "b", namespace=space) as (b,):
            assert b.mirror.whole
            assert b.requests() == a.requests() > 0
            ages = {status.name: status.age_s for status in b.hub.worker_statuses()}
            assert ages["gone"] >= ages["alive"] + 0.4
    async with processes(url, "other", namespace=f"{{test:{secrets.token_hex(8)}}}") as (other,):
        assert other.heard() == {}, "another installation on the same server sees nothing of it"


@pytest.mark.parametrize("fault", ["hold", "cut"])
async def test_a_redis_that_hangs_or_is_gone_costs_no_snapshot(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "RETRY_S", 0.1)
    for module in (stream, mirror):
        monkeypatch.setattr(module, "ANSWER_S", 2.0)  # a slow machine is not taken for a fault, and a fault soon enough
    url = redis_url()
    parts = urlsplit(url)
    async with Relay((parts.hostname or "127.0.0.1", parts.port or 6379)).listening() as relay:
        through = parts._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
        space = f"{{test:{secrets.token_hex(8)}}}"
        async with (
            processes(through, "a", namespace=space) as (a,),
            processes(url, "b", namespace=space) as (b,),
        ):
            one, two = FakeWorker(4, 100.0, name="one"), FakeWorker(4, 100.0, name="two")

            async def both_hear_of(revision: int) -> None:
                """Deliver what tells of a revision until either process knows it of both workers."""
                wanted = {"one": revision, "two": revision}
                async with asyncio.timeout(PATIENCE_S):
                    while not a.revisions() == b.revisions() == wanted:
                        await a.deliver(replace(one.step(), config_revision=revision))
                        await b.deliver(replace(two.step(), config_revision=revision))
                        await asyncio.sleep(0.05)

            await both_hear_of(1)
            getattr(relay, fault)()
            assert await a.deliver(one.step()), "a counts alone what Redis cannot take"
            await until(lambda: not a.mirror.whole, "a knows that it does not know all")
            await until(lambda: b.mirror.whole, "b has nothing to do with it")
            assert await a.deliver(one.step())
            relay.heal()
            await until(lambda: a.mirror.whole, "a hears the others again")
            await both_hear_of(2)


@pytest.mark.usefixtures("redis_may_be_slow")
async def test_a_redis_that_forgets_everything_is_followed_on() -> None:
    url, space = redis_url(), f"{{test:{secrets.token_hex(8)}}}"
    async with processes(url, "a", "b", namespace=space) as (a, b):
        worker = FakeWorker(4, 100.0)
        assert await a.deliver(worker.step())
        await until(lambda: b.heard() == {worker.name: "a"}, "b has read it")
        with redis.Redis.from_url(url) as client:
            client.delete(f"{space}:snapshots", f"{space}:newest:{worker.name}")
        newest = replace(worker.step(), config_revision=9)
        assert await a.deliver(newest)
        await until(lambda: b.hub.worker_statuses()[0].config_revision == 9, "b reads on")


@pytest.mark.usefixtures("redis_may_be_slow")
async def test_what_is_no_snapshot_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    url, space = redis_url(), f"{{test:{secrets.token_hex(8)}}}"
    async with processes(url, "a", "b", namespace=space) as (a, b):
        with redis.Redis.from_url(url) as client:
            client.xadd(f"{space}:snapshots", {"o": b"id-c c", "b": b"nothing that zlib knows"})
        worker = FakeWorker(2, 50.0)
        assert await a.deliver(worker.step())
        await until(lambda: b.heard() == {worker.name: "a"}, "b has read what follows")
        assert "a snapshot from c cannot be read" in caplog.text


async def test_without_redis_everything_is_taken_and_nothing_is_missing() -> None:
    alone, snapshot = Alone(), FakeWorker(2, 50.0).step()
    await alone.start()
    assert alone.whole
    assert await alone.offer(snapshot, dump_snapshot(snapshot))
    assert await alone.offer(snapshot, dump_snapshot(snapshot)), "the hub itself refuses what it has"
    await alone.stop()
