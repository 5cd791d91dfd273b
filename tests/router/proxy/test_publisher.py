"""Deliveries whose outcome is known, and those whose outcome is not."""

import asyncio
from random import Random

import pytest

from router.config import TenantConfig
from router.ports import NotTaken
from router.proxy.limits import Limits
from router.proxy.plane import Plane
from router.proxy.publisher import Publisher
from router.proxy.snapshots import WorkerIdentity
from router.snapshot import OtherWorker, QuotaUse, Snapshot, SnapshotAnswer, dump_answer, parse_snapshot
from tests.fakes.hand_clock import HandClock


class Sink:
    """Takes or refuses as it is told; what reaches it is remembered, also when it then gives no answer."""

    def __init__(self) -> None:
        self.came: list[Snapshot] = []
        self.fault: OSError | None = None
        self.answer = b""

    async def publish(self, body: bytes) -> bytes:
        self.came.append(parse_snapshot(body))
        if self.fault is not None:
            raise self.fault
        return self.answer

    def requests(self) -> int:
        """Return what was counted by who takes each number once."""
        return sum(t.requests for s in {s.seq: s for s in self.came}.values() for t in s.tenants)


class Bench:
    """A publisher over a worker that is asked for nothing but counts."""

    def __init__(self) -> None:
        self.plane = Plane(asyncio.get_running_loop(), Random(1), Limits(), 1_000)
        self.clock, self.sink = HandClock(), Sink()
        self.publisher = Publisher(self.plane, self.sink, WorkerIdentity("router-0", 5.0), self.clock)

    async def publish(self, requests: int) -> bool:
        """Publish a quarter of a second with so many requests."""
        self.clock.advance(0.25)
        self.plane.stats.fresh.tenant("acme", "default").requests += requests
        return await self.publisher.publish_once()


async def test_what_got_no_answer_is_sent_again_as_it_was_before_anything_newer() -> None:
    bench = Bench()
    assert await bench.publish(1)
    bench.sink.fault = OSError("no answer in 2.0 s")
    assert not await bench.publish(10)
    assert not await bench.publish(100)
    bench.sink.fault = None
    assert await bench.publish(1_000)
    assert [snapshot.seq for snapshot in bench.sink.came] == [1, 2, 2, 2, 3]
    lost, *again, newest = bench.sink.came[1:]
    assert again == [lost, lost]
    assert bench.sink.requests() == 1_111
    assert newest.interval_s == pytest.approx(0.5), "it covers what came since the one before was made"


async def test_counts_of_what_was_refused_go_into_the_next() -> None:
    bench = Bench()
    bench.sink.fault = NotTaken("401")
    assert not await bench.publish(1)
    assert not await bench.publish(10)
    bench.sink.came.clear()
    bench.sink.fault = None
    assert await bench.publish(100)
    (taken,) = bench.sink.came
    assert (taken.seq, taken.interval_s) == (3, pytest.approx(0.75))
    assert bench.sink.requests() == 111


async def test_what_may_have_been_taken_and_is_refused_later_goes_into_the_next() -> None:
    bench = Bench()
    bench.sink.fault = OSError("the connection was closed")
    assert not await bench.publish(1)
    bench.sink.fault = NotTaken("401")
    assert not await bench.publish(10)
    bench.sink.came.clear()
    bench.sink.fault = None
    assert await bench.publish(100)
    assert bench.sink.requests() == 111


async def test_a_control_plane_that_does_not_know_the_others_is_not_believed_that_there_are_none() -> None:
    bench = Bench()
    now_s = asyncio.get_running_loop().time()
    bench.plane.quotas.configure([TenantConfig(name="acme", requests_per_minute=100)], now_s)
    use = QuotaUse(tenant="acme", tokens=0, requests=0, concurrent=1)
    other = OtherWorker(worker="other@1", is_younger=False, quotas=(use,))
    bench.sink.answer = dump_answer(SnapshotAnswer(others=(other,)))
    assert await bench.publish(0)
    quota = bench.plane.quotas.of("acme")
    assert quota.concurrent_elsewhere == 1
    bench.sink.answer = dump_answer(SnapshotAnswer(whole=False))
    assert await bench.publish(0)
    assert quota.concurrent_elsewhere == 1, "it keeps to what it knew"
    assert b"x-ratelimit-remaining-requests: 50\r\n" in quota.lines(now_s + 10), "and then to its part"
    bench.sink.answer = b""
    assert await bench.publish(0)
    assert quota.concurrent_elsewhere == 1, "nobody is gone at once"
    bench.plane.quotas.hear(SnapshotAnswer(), now_s + 10)
    assert quota.concurrent_elsewhere == 0
