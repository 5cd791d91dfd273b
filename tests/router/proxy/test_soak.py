"""Soak: prompts without end leave memory, file descriptors, connections and series as they were.

``POINTSMAN_SOAK_PROMPTS=200000`` runs the long form.
"""

import asyncio
import gc
import os
from random import Random

import pytest

from router.proxy.exposition import expose
from router.proxy.process import open_files, resident_bytes
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import Proxy, chat_body, proxying

PROMPTS = int(os.environ.get("POINTSMAN_SOAK_PROMPTS", "6000"))
CLIENTS = 16
MEGABYTE = 1 << 20


async def flood(proxy: Proxy, prompts: int, seed: int) -> None:
    """Send prompts of 8 KB that nobody ever sent before."""
    random = Random(seed)

    async def one_client() -> None:
        async with proxy.client() as client:
            for _ in range(prompts // CLIENTS):
                assert (await client.post(chat_body(random.randbytes(4096).hex()))).status == 200
                for engine in proxy.engines:
                    engine.requests.clear()

    await asyncio.gather(*(one_client() for _ in range(CLIENTS)))


@pytest.mark.timeout(3600)
async def test_unique_prompts_leave_memory_flat_once_the_cap_is_reached() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        index = proxy.plane.fleet.index
        await flood(proxy, PROMPTS // 3, seed=1)
        assert index.entries <= index.capacity
        gc.collect()
        resident, files, series = resident_bytes(), open_files(), expose(proxy.plane).count(b"\n")
        entries = index.entries
        for round_ in range(2):
            await flood(proxy, PROMPTS // 3, seed=2 + round_)
        gc.collect()
        assert index.evictions > 0
        assert index.entries == pytest.approx(entries, rel=0.1)
        assert resident_bytes() - resident < 24 * MEGABYTE
        assert open_files() <= files
        assert expose(proxy.plane).count(b"\n") == series
        assert not any(proxy.counters.values())
