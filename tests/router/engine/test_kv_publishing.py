"""KV events as a subscriber sees them: the shape of the recordings, and a residency that agrees with the cache."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import create_server
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from router.core.hardware_profiles import A100_80G
from router.engine.block_chain import block_chain
from router.engine.instance import EngineInstance
from router.engine.kv_publisher import END_OF_REPLAY, EventEndpoints, KvPublisher
from router.engine.models import ServedModels
from router.engine.tokens import pack_ids, pack_text
from tests.patience import PATIENCE_S
from tests.ports import free_ports
from tests.router.engine.serving import call, serving
from tests.shared_material import shared_path

COMPLETIONS = "/v1/completions"
ANY_PORT = EventEndpoints("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv@test@tiny")


@asynccontextmanager
async def publishing(**changes: Any) -> AsyncIterator[EngineInstance]:
    async with serving(events=ANY_PORT, **changes) as engine:
        yield engine


async def sources(engine: EngineInstance) -> dict[str, Any]:
    listed = (await call(engine.port, "GET", "/kv_event_sources")).json
    assert list(listed) == ["0"]
    return dict(listed["0"])


async def replayed(engine: EngineInstance, start: int = 0) -> list[tuple[int, list[dict[str, Any]]]]:
    """Return (sequence number, events) of every batch from ``start`` on."""
    socket = zmq.asyncio.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect((await sources(engine))["replay_endpoint"])
    batches = []
    try:
        await socket.send_multipart([b"", start.to_bytes(8, "big")])
        async with asyncio.timeout(PATIENCE_S):
            while True:
                *_, number, payload = await socket.recv_multipart()
                if number == END_OF_REPLAY:
                    return batches
                _, events, rank = msgspec.msgpack.decode(payload)
                assert rank == 0
                batches.append((int.from_bytes(number, "big"), events))
    finally:
        socket.close()


async def ask(engine: EngineInstance, text: str, tokens: int = 1, **fields: Any) -> Any:
    answer = await call(engine.port, "POST", COMPLETIONS, {"prompt": text, "max_tokens": tokens, **fields})
    assert answer.status == 200
    return answer.json


def resident(batches: list[tuple[int, list[dict[str, Any]]]]) -> set[int]:
    """Apply events naively: what is held after them."""
    held: set[int] = set()
    for _, events in batches:
        for event in events:
            if event["type"] == "BlockStored":
                held |= set(event["block_hashes"])
            elif event["type"] == "BlockRemoved":
                assert held >= set(event["block_hashes"])
                held -= set(event["block_hashes"])
            else:
                held.clear()
    return held


async def test_stored_blocks_carry_the_prompts_tokens_and_chain() -> None:
    async with publishing() as engine:
        await ask(engine, "a" * 64 * 5)
        batches = await replayed(engine)
    (number, (event,)), *_ = batches
    assert number == 0
    assert event["token_ids"] == list(memoryview(pack_text("a" * 320)).cast("I"))
    assert pack_ids(event["token_ids"]) == pack_text("a" * 320)
    chain = block_chain(pack_text("a" * 320), 16, seed=1)
    assert event["block_hashes"] == list(memoryview(chain).cast("Q"))
    assert (event["parent_block_hash"], event["block_size"]) == (None, 16)


async def test_the_next_turn_stores_only_what_is_new_after_its_parent() -> None:
    async with publishing() as engine:
        await ask(engine, "a" * 64 * 4)
        await ask(engine, "a" * 64 * 4 + "b" * 64 * 2)
        first, second = (event for _, events in await replayed(engine) for event in events)
    assert second["parent_block_hash"] == first["block_hashes"][-1]
    assert len(second["block_hashes"]) == 2
    assert len(second["token_ids"]) == 32


async def test_a_hit_publishes_nothing() -> None:
    async with publishing() as engine:
        await ask(engine, "a" * 64 * 4)
        before = len(await replayed(engine))
        await ask(engine, "a" * 64 * 4)
        assert len(await replayed(engine)) == before


async def test_events_agree_with_the_cache_through_evictions_and_a_reset() -> None:
    profile = msgspec.structs.replace(A100_80G, kv_capacity_tokens=1024)
    async with publishing(profile=profile, models=ServedModels(("tiny",), (), 1024)) as engine:
        for number in range(30):
            await ask(engine, f"{number % 12:04d}" * 16 * (3 + number % 7), tokens=40)
        batches = await replayed(engine)
        assert any(event["type"] == "BlockRemoved" for _, events in batches for event in events)
        assert len(resident(batches)) == engine.model.cache.cached > 0
        assert [number for number, _ in batches] == list(range(len(batches)))
        assert (await call(engine.port, "POST", "/reset_prefix_cache")).status == 200
        await ask(engine, "short")
        assert resident(await replayed(engine)) == set()


async def test_a_replay_begins_where_it_is_asked_to() -> None:
    async with publishing() as engine:
        for letter in "abcde":
            await ask(engine, letter * 64)
        assert [number for number, _ in await replayed(engine, start=3)] == [3, 4]


async def test_a_restarted_publisher_gets_its_ports_at_once() -> None:
    first = free_ports(2)
    endpoints = EventEndpoints(f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{first + 1}", "kv")
    for _ in range(200):
        publisher = KvPublisher(endpoints)
        publisher.start()
        await publisher.close()


def test_a_publisher_that_finds_one_port_taken_gives_up_the_other() -> None:
    first = free_ports(2)
    endpoints = EventEndpoints(f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{first + 1}", "kv")
    with create_server(("127.0.0.1", first + 1)), pytest.raises(zmq.ZMQError, match="in use"):
        KvPublisher(endpoints)
    with create_server(("127.0.0.1", first)):
        pass


async def test_a_subscriber_receives_topic_sequence_and_payload() -> None:
    async with publishing() as engine:
        source = await sources(engine)
        socket = zmq.asyncio.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(source["endpoint"])
        try:
            frames = await first_message(engine, socket)
        finally:
            socket.close()
    topic, number, payload = frames
    assert topic == b"kv@test@tiny"
    assert len(number) == 8
    assert msgspec.msgpack.decode(payload)[1][0]["type"] == "BlockStored"


async def first_message(engine: EngineInstance, socket: "zmq.asyncio.Socket") -> list[bytes]:
    """Cause events until one arrives: a subscription takes effect some time after it was made."""
    for number in range(1000):
        await ask(engine, f"{number:04d}" * 16)
        if await socket.poll(10):
            return list(await socket.recv_multipart())
    raise AssertionError("nothing was received")


@pytest.mark.parametrize(
    ("recording", "kind", "fields"),
    [("kv-events-18100.jsonl", kind, ()) for kind in ("BlockRemoved", "AllBlocksCleared")]
    + [("kv-events-lora.jsonl", "BlockStored", ("lora_id", "lora_name", "extra_keys"))],
)
async def test_events_have_the_recorded_fields(recording: str, kind: str, fields: tuple[str, ...]) -> None:
    lines = shared_path(f"samples/{recording}").read_text().splitlines()
    recorded = [event for line in lines for event in json.loads(line)["batch"][1] if event["type"] == kind]
    profile = msgspec.structs.replace(A100_80G, kv_capacity_tokens=512)
    async with publishing(profile=profile, models=ServedModels(("tiny",), ("lora-a",), 512)) as engine:
        await ask(engine, "a" * 64 * 2)
        await ask(engine, "a" * 64 * 2, model="lora-a")
        await ask(engine, "a" * 64 * 2, model="lora-a", cache_salt="s")
        for letter in "bcdef":
            await ask(engine, letter * 64 * 7)
        await call(engine.port, "POST", "/reset_prefix_cache")
        await ask(engine, "short")
        seen = [event for _, events in await replayed(engine) for event in events if event["type"] == kind]
    assert seen[0].keys() == recorded[0].keys()
    for ours, theirs in zip(seen, recorded if fields else (), strict=False):
        assert {name: ours[name] for name in fields} == {name: theirs[name] for name in fields}


async def test_an_engine_without_events_lists_no_sources() -> None:
    async with serving() as engine:
        assert (await call(engine.port, "GET", "/kv_event_sources")).json == {}
