"""A quota of tokens under more demand than it allows, by clients of which half go away in the middle of an answer.

The clock is the test's own: it stands still while requests run, and moves on when every client has been refused.
"""

import asyncio
import json
from collections import deque
from typing import Any

import pytest

from router.config import TenantConfig
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, chunk
from tests.router.proxy.harness import Client, Proxy, chat_body, proxying, request_bytes
from tests.router.proxy.test_quotas import KEY, with_keys

CLIENTS = 50
LIMIT = 1_000
MINUTES = 6
STEP_S = 3.0
PROMPT_TOKENS = 14
TEXT = "Say something of about fifty bytes, please: thanks."
"""At the 4 bytes a token that a worker assumes before it has seen an engine's count."""
OUTPUT_TOKENS = 20
READ_BEFORE_LEAVING = 5
EVENT = chunk(b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n')
LEAVES = "leaves"


class StandingClock:
    """An event loop whose time is the test's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now_s = loop.time()

    def time(self) -> float:
        return self.now_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class CountingEngine(FakeEngine):
    """Streams, stops when the client leaves, and knows what it has worked."""

    def __init__(self) -> None:
        super().__init__(self._stream)
        self.worked_tokens = 0
        self.left = 0
        self.stayed = 0

    async def _stream(self, request: Received, peer: Peer) -> None:
        leaves = json.loads(request.body).get("user") == LEAVES
        output = READ_BEFORE_LEAVING if leaves else OUTPUT_TOKENS
        self.worked_tokens += PROMPT_TOKENS + output
        self.left += leaves
        self.stayed += not leaves
        await peer.send_slices([STREAM_HEAD, *[EVENT] * output])
        if leaves:
            await peer.gone.wait()
            return
        usage = {"choices": [], "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": OUTPUT_TOKENS}}
        peer.send(chunk(b"data: %b\n\n" % json.dumps(usage).encode()) + chunk(b"data: [DONE]\n\n") + LAST_CHUNK)


async def ask_until_refused(proxy: Proxy, leaves: bool, fields: dict[str, Any]) -> None:
    """Send request after request; return with the first refusal."""
    body = chat_body(TEXT, stream=True, user=LEAVES if leaves else "stays", **fields)
    while True:
        async with proxy.client() as client:
            if not leaves:
                answer = await client.post(body, Authorization=f"Bearer {KEY}")
                if answer.status == 429:
                    return
                assert answer.status == 200
            elif not await leave_in_the_middle(client, body):
                return


async def leave_in_the_middle(client: Client, body: dict[str, Any]) -> bool:
    """Send a request and reset the connection while its answer runs; False when it was refused."""
    client.send(request_bytes(json.dumps(body).encode(), Authorization=f"Bearer {KEY}"))
    head = await client.until(b"\r\n\r\n")
    if b" 429 " in head.split(b"\r\n")[0]:
        return False
    for _ in range(READ_BEFORE_LEAVING):
        await client.until(b"word ")
    client.reset()
    return True


@pytest.mark.parametrize("fields", [{"max_tokens": 40}, {}], ids=["max_tokens", "estimated"])
@pytest.mark.parametrize("leaving", [0, CLIENTS // 2], ids=["all stay", "half leave"])
async def test_a_quota_of_1000_tokens_a_minute_holds_within_5_percent(fields: dict[str, Any], leaving: int) -> None:
    async with CountingEngine() as engine, proxying(engine) as proxy:
        clock = StandingClock(asyncio.get_running_loop())
        proxy.plane.loop = clock  # type: ignore[assignment]
        with_keys(proxy, tenants=[TenantConfig(name="acme", tokens_per_minute=LIMIT)])

        clients = deque(number * leaving // CLIENTS != (number + 1) * leaving // CLIENTS for number in range(CLIENTS))

        async def everyone_until_refused() -> None:
            clients.rotate()  # whoever comes first gets most
            await asyncio.gather(*(ask_until_refused(proxy, leaves, fields) for leaves in clients))
            await proxy.settle()

        await everyone_until_refused()
        burst = engine.worked_tokens
        by_minute = []
        for _ in range(MINUTES):
            before = engine.worked_tokens
            for _ in range(round(60 / STEP_S)):
                clock.now_s += STEP_S
                await everyone_until_refused()
            by_minute.append(engine.worked_tokens - before)
        assert burst <= LIMIT * 1.05
        assert engine.left == 0 if leaving == 0 else engine.left > engine.stayed / 2
        assert engine.stayed > MINUTES
        assert sum(by_minute) == pytest.approx(LIMIT * MINUTES, rel=0.05)
        assert proxy.plane.quotas.of("acme").concurrent == 0
        assert not any(proxy.counters.values())
