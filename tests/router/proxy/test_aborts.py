"""Clients that go away at any moment: every counter is released once, every engine notices."""

import asyncio
import json
from contextlib import suppress
from random import Random

import pytest

from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, chunk, hangs, http
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Client, Proxy, chat_body, proxying, request_bytes

ABORTS = 1000
AT_ONCE = 40
EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


def lively(random: Random) -> FakeEngine:
    """An engine that waits a while before the first byte, and streams or answers at a random pace."""

    async def script(request: Received, peer: Peer) -> None:
        await asyncio.sleep(random.choice([0, 0.002, 0.01]))
        if b'"stream": true' not in request.body:
            peer.send(http("200 OK", b"{}"))
            return
        peer.send(STREAM_HEAD)
        for _ in range(random.randrange(1, 20)):
            peer.send(chunk(EVENT))
            await asyncio.sleep(random.choice([0, 0.001]))
        peer.send(LAST_CHUNK)

    return FakeEngine(script)


async def go_away_somewhere(proxy: Proxy, random: Random) -> None:
    """Begin a request, and leave: in the head, in the body, before the first byte, in the stream, or at its end."""
    body = json.dumps(chat_body("x" * random.randrange(2000), stream=random.random() < 0.6)).encode()
    raw = request_bytes(body)
    async with proxy.client() as client:
        client.send(raw[: random.choice([len(raw), len(raw), len(raw), random.randrange(len(raw))])])
        await client.writer.drain()
        await asyncio.sleep(random.choice([0, 0, 0.001, 0.005, 0.015]))
        await leave(client, random)


async def leave(client: Client, random: Random) -> None:
    way = random.randrange(3)
    if way == 0:
        client.reset()
    elif way == 1:
        client.writer.write_eof()
        await client.rest()


async def test_a_thousand_random_aborts_leave_every_counter_at_zero_and_every_engine_idle() -> None:
    random = Random(7)
    engines = [lively(random) for _ in range(4)]
    async with engines[0], engines[1], engines[2], engines[3], proxying(*engines) as proxy:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with gate:
                with suppress(ConnectionResetError):
                    await go_away_somewhere(proxy, random)

        await asyncio.gather(*(one() for _ in range(ABORTS)))
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert not any(proxy.counters.values()), proxy.counters
        outcomes = proxy.outcomes()
        assert outcomes["cancelled"] > 50
        assert not set(outcomes) - {"cancelled", "ok"}
        for link in proxy.plane.links.values():
            assert link.pool.open_connections == link.pool.idle_connections
            link.pool.sweep(proxy.plane.loop.time() + 1e6)
        for engine in engines:
            await engine.all_closed.wait()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("way", ["close", "reset", "half-close"])
async def test_an_engine_that_has_not_answered_yet_notices_at_once(way: str, stream: bool) -> None:
    async with FakeEngine(hangs()) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(request_bytes(json.dumps(chat_body(stream=stream)).encode()))
        while not engine.requests:
            await asyncio.sleep(0)
        if way == "close":
            client.writer.close()
        elif way == "reset":
            client.reset()
        else:
            client.writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            await engine.all_closed.wait()
        await proxy.settle()
        assert proxy.outcomes() == {"cancelled": 1}
        assert not any(proxy.counters.values())


async def test_a_client_that_leaves_while_the_connection_is_being_made_costs_nothing() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        for _ in range(50):
            async with proxy.client() as client:
                client.send(request_bytes(json.dumps(chat_body()).encode()))
                await client.writer.drain()
                client.reset()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        await proxy.settle()
        assert not any(proxy.counters.values())
