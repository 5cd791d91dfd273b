"""Soak: a day of traffic, compressed, leaves memory, file descriptors, connections and series as they were.

``POINTSMAN_SOAK_PROMPTS=200000`` runs the long form, ``-s`` shows its figures.
"""

import asyncio
import gc
import json
import os
from random import Random
from typing import Any, NamedTuple

import h11
import pytest

from router.proxy.exposition import expose
from router.proxy.process import open_files, resident_bytes
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, chunk, http
from tests.router.proxy.harness import CHAT, MODEL, Client, Proxy, chat_body, proxying, request_bytes

PROMPTS = int(os.environ.get("POINTSMAN_SOAK_PROMPTS", "6000"))
CLIENTS = 16
MEGABYTE = 1 << 20
ODD = 12
"""One request in so many is of each odd kind."""
RARE = 10
"""Series of what is counted when it first happens: few, for no word of a client's or engine's is a label."""


def of_a_day() -> FakeEngine:
    """Return an engine that streams when it is asked to, and now and then fails in one of the usual ways."""
    random = Random(1)

    async def serve(request: Received, peer: Peer) -> None:
        fate = random.randrange(200)
        if fate == 0:
            peer.send(http("500 Internal Server Error", b'{"error":"of its own"}'))
        elif fate == 1:
            peer.reset()
        elif b'"stream": true' in request.body:
            await peer.send_slices([STREAM_HEAD, *([chunk(b'data: {"choices":[]}\n\n')] * 5)])
            peer.reset() if fate == 2 else peer.send(LAST_CHUNK)
        else:
            peer.send(http("200 OK", b'{"usage":{"prompt_tokens":9,"completion_tokens":1}}'))

    return FakeEngine(serve)


class Ask(NamedTuple):
    """One request; a client that ``leaves`` waits for no answer, and with some answers the connection ends."""

    raw: bytes
    leaves: bool = False


def ask(random: Random) -> Ask:
    """Make a request that nobody ever sent before: every word of the client's own is a new one."""
    word, text = random.randbytes(8).hex(), random.randbytes(4096).hex()
    fields = {"X_Request_Id": word, "X_Pointsman_Session": word, "X_Pointsman_Workload": word, f"X_{word}": word}

    def post(body: dict[str, Any], path: str = CHAT) -> bytes:
        return request_bytes(json.dumps(body).encode(), path, **fields)

    match random.randrange(ODD):
        case 0:
            return Ask(post(chat_body(text, stream=True)))
        case 1:
            return Ask(post(chat_body(text, stream=True)), leaves=True)
        case 2:
            return Ask(post({"model": word, "messages": []}))
        case 3:
            return Ask(post({"model": MODEL, "prompt": list(random.randbytes(4096))}, "/v1/completions"))
        case 4:
            return Ask(post({"model": MODEL, word: word}, f"/v1/{word}"))
        case 5:
            return Ask(request_bytes(word.encode(), f"/{word}"))
        case 6:
            return Ask(f"GET /{word} HTTP/1.1\r\nHost: x\r\n{word}\r\n\r\n".encode())
        case _:
            return Ask(post({**chat_body(text), "cache_salt": word}))


async def served(client: Client, request: Ask, random: Random) -> bool:
    """Send a request and read its answer; tell whether the connection goes on."""
    client.send(request.raw)
    if request.leaves:
        await asyncio.sleep(random.choice([0, 0.001]))
        client.reset()
        return False
    try:
        return (await client.answer()).fields.get("connection") != "close"
    except (OSError, h11.RemoteProtocolError):
        return False


async def flood(proxy: Proxy, prompts: int, seed: int) -> None:
    """Send so many requests, from some clients at a time, and let everything come to rest."""
    random = Random(seed)
    left = iter(range(prompts))

    async def one_client() -> None:
        while True:
            async with proxy.client() as client:
                for _ in left:
                    for engine in proxy.engines:
                        engine.requests.clear()
                    if not await served(client, ask(random), random):
                        break
                else:
                    return

    await asyncio.gather(*(one_client() for _ in range(CLIENTS)))
    while proxy.plane.open_clients:
        await asyncio.sleep(0.01)
    for link in proxy.plane.links.values():
        link.pool.sweep(proxy.plane.loop.time() + 60)
    for engine in proxy.engines:
        await engine.all_closed.wait()


class Resources(NamedTuple):
    """What must not grow."""

    resident_mb: int
    files: int
    series: int
    entries: int

    @classmethod
    def of(cls, proxy: Proxy) -> "Resources":
        gc.collect()
        series, entries = expose(proxy.plane).count(b"\n"), proxy.plane.fleet.index.entries
        seen = cls(resident_bytes() // MEGABYTE, open_files(), series, entries)
        print(seen)
        return seen


@pytest.mark.timeout(3600)
async def test_a_day_of_traffic_leaves_everything_as_it_was_once_caps_are_reached() -> None:
    async with of_a_day() as one, of_a_day() as two, proxying(one, two) as proxy:
        index = proxy.plane.fleet.index
        await flood(proxy, PROMPTS // 3, seed=1)
        before = Resources.of(proxy)
        assert index.entries <= index.capacity
        for round_ in range(2):
            await flood(proxy, PROMPTS // 3, seed=2 + round_)
            after = Resources.of(proxy)
        assert index.evictions > 0
        assert after.entries == pytest.approx(before.entries, rel=0.1)
        assert after.resident_mb - before.resident_mb < 24
        assert after.files <= before.files
        assert after.series <= before.series + RARE
        assert not any(proxy.counters.values())
        print(proxy.outcomes())
