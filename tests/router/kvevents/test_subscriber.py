"""From a socket to a residency, against the simulated engine and against plain publishers."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from router.config import EventDirection
from router.core.hardware_profiles import A100_80G
from router.core.prefix.token_chain import TokenHasher
from router.engine.instance import EngineInstance
from router.engine.kv_publisher import EventEndpoints
from router.engine.models import ServedModels
from router.engine.tokens import pack_text
from router.kvevents.discovery import VLLM_PATH, discover
from router.kvevents.feed import Feed, FeedStatus
from router.kvevents.replay import END
from router.kvevents.residency import Changes
from router.kvevents.source import EventSource
from router.kvevents.subscriber import SLICE_S, KvEventReader
from tests.fakes.relay import Relay
from tests.patience import PATIENCE_S
from tests.ports import free_ports
from tests.router.engine.serving import HOST, call, serving, until

HASHER = TokenHasher(seed=77)
ANY_PORT = EventEndpoints("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv@test")


class WallClock:
    def monotonic_s(self) -> float:
        return time.monotonic()

    def unix_s(self) -> float:
        return time.time()


class Index:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], set[bytes]] = {}

    def residency_changed(self, instance: str, rank: int, changes: Changes) -> None:
        held = self.held.setdefault((instance, rank), set())
        if changes.cleared:
            held.clear()
        held -= _blocks(changes.removed)
        held |= _blocks(changes.stored)

    def of(self, instance: str = "e", rank: int = 0) -> set[bytes]:
        return self.held.get((instance, rank), set())


def _blocks(packed: bytes) -> set[bytes]:
    return {packed[start : start + 8] for start in range(0, len(packed), 8)}


@asynccontextmanager
async def reading(
    clock: Any = None, replay_timeout_s: float = PATIENCE_S
) -> AsyncIterator[tuple[KvEventReader, Index]]:
    reader = KvEventReader(clock or WallClock(), replay_timeout_s=replay_timeout_s)
    try:
        yield reader, Index()
    finally:
        await reader.close()


def subscribe(reader: KvEventReader, index: Index, source: EventSource, instance: str = "e") -> str:
    feed = Feed.of(instance, source, HASHER, index)
    list(feed.tell())
    return reader.add(feed, source)


async def discovered(engine: EngineInstance) -> EventSource:
    answer = await call(engine.port, "GET", VLLM_PATH)
    (source,) = discover({VLLM_PATH: (answer.status, answer.body)}, f"http://{HOST}:{engine.port}")
    return source


async def ask(engine: EngineInstance, text: str, tokens: int = 1) -> None:
    body = {"prompt": text, "max_tokens": tokens}
    assert (await call(engine.port, "POST", "/v1/completions", body)).status == 200


def status(reader: KvEventReader) -> FeedStatus:
    (only,) = reader.status()
    return only


async def test_residency_follows_an_engine_through_evictions_and_a_reset() -> None:
    profile = msgspec.structs.replace(A100_80G, kv_capacity_tokens=1024)
    models = ServedModels(("tiny",), (), 1024)
    async with serving(profile=profile, models=models, events=ANY_PORT) as engine, reading() as (reader, index):
        await ask(engine, "before anybody listened " * 8)
        subscribe(reader, index, await discovered(engine))
        for number in range(40):
            await ask(engine, f"{number % 12:04d}" * 16 * (3 + number % 7), tokens=40)
        await until(lambda: status(reader).next_number == engine.ranks[0].published)
        assert len(index.of()) == engine.model.cache.cached > 0
        assert status(reader).unknown_removals == 0
        await call(engine.port, "POST", "/reset_prefix_cache")
        await ask(engine, "x")
        await until(lambda: index.of() == set())
        assert (status(reader).lost, status(reader).orphans) == (0, 0)


async def test_a_prompt_is_found_by_its_tokens() -> None:
    async with serving(events=ANY_PORT) as engine, reading() as (reader, index):
        subscribe(reader, index, await discovered(engine))
        await ask(engine, "a" * 640)
        wanted = _blocks(HASHER.chain(pack_text("a" * 640), 16))
        await until(lambda: wanted <= index.of())
        assert status(reader).block_tokens == 16
        assert status(reader).connected


async def test_a_late_reader_learns_the_past_by_a_replay() -> None:
    async with serving(events=ANY_PORT) as engine, reading() as (reader, index):
        for letter in "abcdefgh":
            await ask(engine, letter * 256)
        subscribe(reader, index, await discovered(engine))
        await until(lambda: len(index.of()) == engine.model.cache.cached)
        assert status(reader).applied == 8


async def test_a_restarted_engine_starts_with_nothing() -> None:
    first = free_ports(2)
    endpoints = EventEndpoints(f"tcp://{HOST}:{first}", f"tcp://{HOST}:{first + 1}", "kv@test")
    async with reading() as (reader, index):
        async with serving(events=endpoints) as engine:
            source = await discovered(engine)
            feed = Feed.of("e", source, HASHER, index)
            list(feed.tell())
            reader.add(feed, source)
            await ask(engine, "a" * 640)
            await until(lambda: len(index.of()) == engine.model.cache.cached > 0)
        await until(lambda: not status(reader).connected)
        assert index.of() == set()
        async with serving(events=endpoints, hash_seed=2) as engine:
            await ask(engine, "b" * 256)
            wanted = _blocks(HASHER.chain(pack_text("b" * 256), 16))
            await until(lambda: feed.settled and feed.residency.chains == {int.from_bytes(b, "little") for b in wanted})
            assert (status(reader).restarts, index.of()) == (1, set())
            list(feed.tell())
            assert index.of() == wanted


class LateSubscriptions(Relay):
    """In front of a publisher, to which subscribers are connected before they have subscribed to anything."""

    def __init__(self, endpoint: str) -> None:
        super().__init__((HOST, int(endpoint.rpartition(":")[2])))
        self.subscribed = asyncio.Event()

    async def _pass_up(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        for _ in range(64):  # the greeting, each part of which answers one of the other side's
            sink.write(await source.readexactly(1))
        ready = await source.readexactly(2)
        sink.write(ready + await source.readexactly(ready[1]))
        await self.subscribed.wait()
        await super()._pass_up(source, sink)


async def test_what_a_late_subscription_missed_is_found_without_a_later_message() -> None:
    async with serving(events=ANY_PORT) as engine, reading() as (reader, index):
        source = await discovered(engine)
        async with LateSubscriptions(source.events).listening() as relay:
            subscribe(reader, index, dataclasses.replace(source, events=f"tcp://{HOST}:{relay.port}"))
            await until(lambda: status(reader).connected and not status(reader).replaying)
            await ask(engine, "a" * 640)
            await until(lambda: len(index.of()) == engine.model.cache.cached > 0)
            relay.subscribed.set()
            await ask(engine, "b" * 640)
            await until(lambda: len(index.of()) == engine.model.cache.cached)
            assert (status(reader).lost, status(reader).restarts) == (0, 0)


class Publisher:
    """A plain publisher of numbered batches, each with one block."""

    def __init__(self, direction: EventDirection, endpoint: str = "tcp://127.0.0.1:*") -> None:
        self._socket = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        if direction is EventDirection.CONNECT:
            self._socket.bind(endpoint)
        else:
            self._socket.connect(endpoint)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.number = 0

    def publish(self, *, lose: bool = False) -> None:
        event = ["BlockStored", [self.number], None, [self.number] * 4, 4]
        payload = msgspec.msgpack.encode([time.time(), [event], 0])
        if not lose:
            self._socket.send_multipart([b"t", self.number.to_bytes(8, "big"), payload])
        self.number += 1

    def send(self, *frames: bytes) -> None:
        self._socket.send_multipart(list(frames))

    def close(self) -> None:
        self._socket.close()


Publishers = Callable[..., Publisher]


@pytest.fixture
def publishers() -> Iterator[Publishers]:
    """Makes publishers, and closes them after the test."""
    made: list[Publisher] = []

    def make(direction: EventDirection = EventDirection.CONNECT, *endpoint: str) -> Publisher:
        made.append(Publisher(direction, *endpoint))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=list(EventDirection))
def direction(request: pytest.FixtureRequest) -> Iterator[EventDirection]:
    return request.param


async def test_either_side_may_bind(direction: EventDirection, publishers: Publishers) -> None:
    async with reading() as (reader, index):
        if direction is EventDirection.BIND:
            endpoint = subscribe(reader, index, EventSource("tcp://127.0.0.1:*", direction=direction))
            publisher = publishers(direction, endpoint)
        else:
            publisher = publishers(direction)
            subscribe(reader, index, EventSource(publisher.endpoint))
        await until(lambda: status(reader).connected)
        await publish_until(publisher, lambda: len(index.of()) > 3)


async def publish_until(publisher: Publisher, condition: Any) -> None:
    """Publish until a condition holds: a subscription takes effect some time after the connection."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            publisher.publish()
            await asyncio.sleep(0.005)


async def test_without_a_replay_a_lost_message_clears_and_goes_on(publishers: Publishers) -> None:
    publisher = publishers()
    async with reading() as (reader, index):
        subscribe(reader, index, EventSource(publisher.endpoint))
        await publish_until(publisher, lambda: len(index.of()) > 3)
        publisher.publish(lose=True)
        publisher.publish()
        await until(lambda: len(index.of()) == 1)
        assert status(reader).gaps >= 1
        assert "missed" in status(reader).last_loss


async def test_a_fault_over_the_messages_of_one_engine_stops_neither_its_reading_nor_that_of_others(
    publishers: Publishers,
) -> None:
    class Faulty(Index):
        faults = 0

        def residency_changed(self, instance: str, rank: int, changes: Changes) -> None:
            if instance == "faulty" and changes.present and not self.faults:
                self.faults += 1
                raise RecursionError("a fault of ours")
            super().residency_changed(instance, rank, changes)

    faulty, other = publishers(), publishers()
    async with reading() as (reader, _):
        index = Faulty()
        subscribe(reader, index, EventSource(faulty.endpoint), "faulty")
        subscribe(reader, index, EventSource(other.endpoint), "other")
        await publish_until(faulty, lambda: index.faults)
        await publish_until(other, lambda: len(index.of("other")) > 3)
        await publish_until(faulty, lambda: index.of("faulty"))
        assert all(each.last_loss for each in reader.status() if each.instance == "faulty")  # it began again


async def test_garbage_is_counted_and_does_not_stop_the_rest(publishers: Publishers) -> None:
    publisher = publishers()
    async with reading() as (reader, index):
        subscribe(reader, index, EventSource(publisher.endpoint))
        await publish_until(publisher, lambda: len(index.of()) > 3)
        publisher.send(b"t", b"short", b"")
        publisher.send(b"t")
        publisher.send(b"t", publisher.number.to_bytes(8, "big"), b"\xc1")
        publisher.number += 1
        before = len(index.of())
        publisher.publish()
        await until(lambda: len(index.of()) == before + 1)
        assert status(reader).undecodable == 1
        assert status(reader).malformed == 2


@pytest.fixture
def silent() -> Iterator["zmq.Socket[bytes]"]:
    """A replay socket that never answers."""
    socket = zmq.Context.instance().socket(zmq.ROUTER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    socket.close()


async def test_a_silent_replay_socket_ends_in_following(publishers: Publishers, silent: "zmq.Socket[bytes]") -> None:
    publisher = publishers()
    publisher.publish(lose=True)  # a past that was empty would not be missed
    async with reading(replay_timeout_s=0.05) as (reader, index):
        subscribe(reader, index, EventSource(publisher.endpoint, silent.getsockopt_string(zmq.LAST_ENDPOINT)))
        await publish_until(publisher, lambda: len(index.of()) > 3 and not status(reader).replaying)
        assert "did not answer" in status(reader).last_loss


@asynccontextmanager
async def crowded(count: int, room: int) -> AsyncIterator[tuple[str, list[int]]]:
    """A replay socket with so many messages, each of one block, that has room for so few of them at a time.

    As an engine's socket does, it leaves out what it has no room for: in turns from the middle, and before the end.
    Yields its endpoint, and what was asked for.
    """
    asked: list[int] = []
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.ROUTER)
    socket.bind("tcp://127.0.0.1:*")

    async def serve() -> None:
        while True:
            client, _, start = await socket.recv_multipart()
            first = int.from_bytes(start, "big")
            asked.append(first)
            sent = [*range(first, count)][:room] + ([count - 1] if len(asked) % 2 and first + room < count else [])
            for number in sent:
                event = ["BlockStored", [number], None, [number] * 4, 4]
                payload = msgspec.msgpack.encode([1.0, [event], 0])
                await socket.send_multipart([client, b"", b"t", number.to_bytes(8, "big"), payload])
            if first + room >= count or len(asked) % 2:
                await socket.send_multipart([client, b"", b"", END, b""])

    task = asyncio.create_task(serve())
    try:
        yield socket.getsockopt_string(zmq.LAST_ENDPOINT), asked
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        context.destroy(linger=0)


async def test_a_past_that_is_longer_than_the_engine_has_room_for_is_had_in_pieces(publishers: Publishers) -> None:
    publisher = publishers()
    async with crowded(100, 30) as (endpoint, asked), reading(replay_timeout_s=1.0) as (reader, index):
        subscribe(reader, index, EventSource(publisher.endpoint, endpoint))
        await until(lambda: status(reader).next_number == 100 and not status(reader).replaying)
        assert len(index.of()) == 100
        assert status(reader).lost == 0
        assert {0, 30, 60, 90} <= set(asked)


async def test_a_removed_feed_hears_nothing_more(publishers: Publishers) -> None:
    publisher = publishers()
    async with reading() as (reader, index):
        subscribe(reader, index, EventSource(publisher.endpoint))
        await publish_until(publisher, lambda: len(index.of()) > 3)
        reader.remove("e", 0)
        reader.remove("e", 0)
        held = len(index.of())
        publisher.publish()
        await asyncio.sleep(0)
        assert (len(index.of()), reader.status()) == (held, [])


async def test_an_endpoint_that_is_taken_is_an_error() -> None:
    async with reading() as (reader, index):
        endpoint = subscribe(reader, index, EventSource("tcp://127.0.0.1:*", direction=EventDirection.BIND))
        with pytest.raises(OSError, match="in use"):
            subscribe(reader, index, EventSource(endpoint, direction=EventDirection.BIND), "other")


class CountedClock(WallClock):
    """Every look at the clock is a third of a slice later: a message takes that long."""

    def __init__(self) -> None:
        self.looks = 0

    def monotonic_s(self) -> float:
        self.looks += 1
        return self.looks * SLICE_S / 3


async def test_a_flood_is_applied_in_slices_between_which_everything_else_runs(publishers: Publishers) -> None:
    flood, quiet = publishers(), publishers()
    async with reading(CountedClock()) as (reader, index):
        for name, publisher in (("flood", flood), ("quiet", quiet)):
            subscribe(reader, index, EventSource(publisher.endpoint), name)
            await publish_until(publisher, lambda name=name: len(index.of(name)) > 0)
        heard = len(index.of("quiet"))
        for _ in range(2000):
            flood.publish()
        quiet.publish()
        seen, turns, most = len(index.of("flood")), 0, 0
        while len(index.of("flood")) < 2000 or len(index.of("quiet")) == heard:
            await asyncio.sleep(0)
            turns += 1
            applied = len(index.of("flood"))
            most, seen = max(most, applied - seen), applied
        assert most <= 4
        assert turns > 400
