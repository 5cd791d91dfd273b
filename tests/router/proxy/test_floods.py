"""Floods of connections that do nothing, little or nonsense: the others are served as before, and nothing piles up.

``POINTSMAN_FLOOD=10000`` runs with the full number of connections.
"""

import asyncio
import os
import resource

import pytest

from router.proxy.limits import Limits
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import Proxy, proxying

FLOOD = int(os.environ.get("POINTSMAN_FLOOD", "600"))
LIMITS = Limits(drain_s=1.0)


@pytest.fixture(autouse=True)
def many_files() -> None:
    """Let this process open both ends of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * FLOOD + 500
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.fail(f"{wanted} open files are needed, {hard} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def opened(proxy: Proxy, count: int, first: bytes = b"") -> list[asyncio.StreamWriter]:
    """Open connections that send something and then stay."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        if first:
            writer.write(first)
        writers.append(writer)
    return writers


@pytest.mark.parametrize(
    "first",
    [b"", b"POST /v1/chat/completions HTT", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 20_000],
    ids=["idle", "slowloris", "large heads"],
)
async def test_others_are_served_while_a_flood_waits_and_it_is_cleared_in_time(first: bytes) -> None:
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS) as proxy:
        flood = await opened(proxy, FLOOD, first)
        while proxy.plane.open_clients < FLOOD:
            await asyncio.sleep(0)
        for _ in range(20):
            assert (await proxy.chat()).status == 200
        assert proxy.counters["held_bytes"] == 0
        proxy.expire()
        proxy.expire()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert len(proxy.plane.deadlines) == 0
        for writer in flood:
            writer.close()


async def test_a_flood_of_bad_requests_is_answered_and_forgotten() -> None:
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS) as proxy:
        flood = await opened(proxy, FLOOD, b"GET / HTTP/9.9\r\n\r\n")
        assert (await proxy.chat()).status == 200
        for writer in flood:
            writer.close()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert not any(proxy.counters.values())
