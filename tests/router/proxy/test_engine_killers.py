"""A request that kills every engine that serves it costs two of them, and everybody else is served."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest

from router.proxy.breaker import BreakerState
from tests.fakes.engine import (
    LAST_CHUNK,
    STREAM_HEAD,
    FakeEngine,
    Peer,
    Received,
    answers_json,
    chunk,
    hangs,
    resets,
    serving,
)
from tests.fakes.mortal_engine import AS_VLLM, AT_ONCE
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Answer, Proxy, chat_body, proxying, request_bytes

ENGINES = 4


class MortalEngine:
    """One process, as the harness knows an engine."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def mortal(kind: str) -> AsyncIterator[MortalEngine]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.mortal_engine", kind, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield MortalEngine(process, int(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def dead_among(engines: list[MortalEngine], expected: int) -> int:
    """Wait for as many to have died as are expected, then see whether more do."""
    while sum(engine.process.returncode is not None for engine in engines) < expected:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    return sum(engine.process.returncode is not None for engine in engines)


@pytest.mark.parametrize("warm", [True, False], ids=["pooled connections", "fresh connections"])
@pytest.mark.parametrize("kind", [AT_ONCE, AS_VLLM])
async def test_it_costs_two_engines_and_is_then_refused(kind: str, warm: bool) -> None:
    stream = warm
    async with AsyncExitStack() as stack:
        engines = list(await asyncio.gather(*(stack.enter_async_context(mortal(kind)) for _ in range(ENGINES))))
        proxy = await stack.enter_async_context(proxying(*cast(list[FakeEngine], engines)))
        if warm:
            for _ in range(ENGINES * 2):
                assert (await proxy.chat(stream=stream)).status == 200
        killer: dict[str, Any] = {"seed": 7, "stream": stream}
        answer = await proxy.chat(**killer)
        assert (answer.status, answer.code, answer.fields["x-should-retry"]) == (502, "upstream_failed", "false")
        assert "engines died" in answer.json["error"]["message"]
        assert answer.fields["x-pointsman-attempts"] == "2"
        assert await dead_among(engines, 2) == 2
        again = await asyncio.gather(*(proxy.chat(**killer) for _ in range(5)))
        assert {(a.status, a.code) for a in again} == {(502, "upstream_failed")}
        assert int(again[0].fields["retry-after"]) > 20
        others = await asyncio.gather(*(proxy.chat(f"other {n}", stream=stream) for n in range(20)))
        assert [a.status for a in others] == [200] * 20
        assert await dead_among(engines, 2) == 2
        assert not any(proxy.counters.values())
        assert (proxy.plane.suspects.given_up, proxy.plane.suspects.refused) == (1, 5)
        assert sum(link.deaths for link in proxy.plane.links.values()) == 2


async def dies(engine: FakeEngine) -> None:
    """Stop, in the middle of what an engine does."""
    asyncio.get_running_loop().create_task(engine.stop())
    await asyncio.Event().wait()


async def test_what_was_beside_it_at_one_death_is_served_elsewhere_and_cleared() -> None:
    async with FakeEngine(hangs()) as one, FakeEngine() as two, proxying(one) as proxy:
        asking = [asyncio.create_task(proxy.chat(f"innocent {n}")) for n in range(10)]
        while len(one.requests) < 10:
            await asyncio.sleep(0)
        proxy.apply([one, two])
        await one.stop()
        answers = await asyncio.gather(*asking)
        assert [a.status for a in answers] == [200] * 10
        assert {a.fields["x-pointsman-attempts"] for a in answers} == {"2"}
        while len(proxy.plane.suspects):
            await asyncio.sleep(0)
        assert proxy.plane.links[0].breaker.state is BreakerState.OPEN  # at once: nobody listens there
        assert proxy.plane.links[0].deaths == 1
        assert not any(proxy.counters.values())


async def test_resets_by_engines_that_live_are_tried_three_times_as_ever() -> None:
    engines = [FakeEngine(resets()) for _ in range(5)]
    async with serving(engines), proxying(*engines) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.code) == (502, "upstream_failed")
        assert "x-should-retry" not in answer.fields
        assert sum(len(engine.requests) for engine in engines) == 3
        assert (await proxy.chat()).fields["x-pointsman-attempts"] == "3"
        while len(proxy.plane.suspects):
            await asyncio.sleep(0)
        assert (proxy.plane.suspects.given_up, proxy.plane.suspects.refused) == (0, 0)


async def test_the_error_of_an_engine_that_lives_is_passed_on_as_it_came() -> None:
    error = b'{"error":{"message":"mine"}}'
    engines = [FakeEngine(answers_json(error, "500 Internal Server Error")) for _ in range(2)]
    async with serving(engines), proxying(*engines) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.body) == (500, error)
        assert answer.fields["x-pointsman-attempts"] == "2"
        assert not any(proxy.counters.values())


async def test_a_client_that_leaves_while_its_request_waits_for_word_leaves_nothing_behind() -> None:
    asked = asyncio.Event()
    engines = [FakeEngine(resets()) for _ in range(3)]

    async def unsure() -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    async with serving(engines), proxying(*engines) as proxy:
        for link in proxy.plane.links.values():
            link.inquest._is_gone = unsure
        async with proxy.client() as client:
            client.send(request_bytes(json.dumps(chat_body()).encode()))
            await asked.wait()
            while sum(len(engine.requests) for engine in engines) < 2:
                await asyncio.sleep(0)
        await proxy.settle()
        assert proxy.outcomes() == {"cancelled": 1}
        assert not any(proxy.counters.values())
        proxy.apply([])  # the engines are removed: whoever waits for word of them is told that there is none
        while len(proxy.plane.suspects):
            await asyncio.sleep(0)


async def test_engines_that_die_in_the_middle_of_its_stream_count_as_well() -> None:
    engines = [FakeEngine() for _ in range(4)]

    def kills(engine: FakeEngine) -> Any:
        async def script(request: Received, peer: Peer) -> None:
            peer.send(STREAM_HEAD + chunk(b"data: {}\n\n"))
            await asyncio.sleep(0.02)
            await dies(engine)

        return script

    for engine in engines:
        engine.default = kills(engine)

    async def ask(proxy: Proxy) -> bytes:
        async with proxy.client() as client:
            client.send(request_bytes(json.dumps(chat_body(stream=True)).encode(), Connection="close"))
            return await client.rest()

    async with serving(engines), proxying(*engines) as proxy:
        for died in (1, 2):
            assert b'"code":"upstream_failed"' in await ask(proxy)
            while sum(link.deaths for link in proxy.plane.links.values()) < died:
                await asyncio.sleep(0)
        assert LAST_CHUNK not in await ask(proxy)
        refused: Answer = await proxy.chat(stream=True)
        assert (refused.status, refused.fields["x-should-retry"]) == (502, "false")
        assert proxy.plane.suspects.refused == 2
        assert sum(len(engine.requests) for engine in engines) == 2
        assert not any(proxy.counters.values())
