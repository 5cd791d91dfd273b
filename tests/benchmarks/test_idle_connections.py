"""10,000 clients that keep their connections and say nothing, or a flood of heads that never end: do the others notice?

``pytest -m benchmark tests/benchmarks/test_idle_connections.py -s``; ``POINTSMAN_IDLE`` sets the number. The worker is
a process of its own, so each side needs descriptors for its own ends alone.
"""

import asyncio
import os
import resource
import statistics
from contextlib import suppress
from itertools import repeat
from pathlib import Path

import pytest

from router.bench.closed_loop import LoopPlan, run_loop
from router.bench.mock_engine import MockConnection
from router.bench.worker_process import WorkerProcess, worker_process
from router.config import ConfigDocument, InstanceConfig, WorkloadConfig
from router.core.policy import Policy
from router.proxy.process import allow_open_files
from tests.ports import free_ports

IDLE = int(os.environ.get("POINTSMAN_IDLE", "10000"))
FLOOD = 2000
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 20_000
CLIENTS = 8
SECONDS = 3.0
ROUNDS = 3
"""The best of so many counts: the machine has other things to do."""
THINK_S = 0.02
AT_ONCE = 200
MOST_KB = 8.0
"""Of resident memory for a connection."""
SLACK_MS = 5.0
"""Beyond twice the latency (p99) that others have alone: wide, for machines that have other things to do."""
BODY = b'{"model":"m","stream":false,"messages":[{"role":"user","content":"%s"}]}' % (b"word " * 180)
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

Idle = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def document(port: int) -> ConfigDocument:
    return ConfigDocument(
        revision=1,
        instances=(InstanceConfig(id="e0", name="e0", url=f"http://127.0.0.1:{port}", models=("m",)),),
        policies=(Policy(),),
        workloads=(WorkloadConfig(name="default", policy="default"),),
    )


async def settle_down(port: int) -> Idle:
    """Ask something, as a client does, and stay."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def settled(port: int, count: int) -> list[Idle]:
    here: list[Idle] = []
    while len(here) < count:
        here += await asyncio.gather(*(settle_down(port) for _ in range(min(AT_ONCE, count - len(here)))))
    return here


async def measured(worker: WorkerProcess, what: str) -> float:
    """Let a few clients ask for some rounds; print what they saw, and return the best p99 of their latencies in ms."""
    return min([await one_round(worker, what) for _ in range(ROUNDS)])


async def one_round(worker: WorkerProcess, what: str) -> float:
    cpu_s = worker.cpu_s()
    plan = LoopPlan(port=worker.port, clients=CLIENTS, seconds=SECONDS, think_s=THINK_S)
    seen = await run_loop(plan, repeat(BODY))
    cpu_us = (worker.cpu_s() - cpu_s) * 1e6 / len(seen.latencies_s)
    cuts = statistics.quantiles(seen.latencies_s, n=100)
    print(
        f"{what}: {len(seen.latencies_s)} requests, latency p50 {cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f} ms, "
        f"CPU {cpu_us:.0f} us a request, {worker.rss_mb():.0f} MB"
    )
    assert seen.failures == 0
    return cuts[98] * 1e3


async def test_others_keep_their_latency_beside_10_000_idle_connections(tmp_path: Path) -> None:
    allow_open_files()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < IDLE + 500:
        pytest.fail(f"{IDLE + 500} open files are needed, {soft} are allowed: raise the hard limit (ulimit -Hn)")
    server = await asyncio.get_running_loop().create_server(MockConnection, "127.0.0.1", 0)
    engine_port = server.sockets[0].getsockname()[1]
    with worker_process(document(engine_port), free_ports(1), tmp_path) as worker:
        await measured(worker, "warming up")
        alone_ms = await measured(worker, "alone")
        before_mb = worker.rss_mb()
        idle = await settled(worker.port, IDLE)
        kb_each = (worker.rss_mb() - before_mb) * 1000 / IDLE
        cpu_s = worker.cpu_s()
        await asyncio.sleep(SECONDS)
        idle_share = (worker.cpu_s() - cpu_s) / SECONDS
        beside_ms = await measured(worker, f"beside {IDLE} idle connections")
        print(f"{IDLE} idle connections: {kb_each:.1f} KB each, {idle_share * 100:.1f} % of a core")
        assert all(not reader.at_eof() for reader, _ in idle)
        for _, writer in idle:
            writer.transport.abort()
        await measured(worker, "after they left")
    server.close()
    assert kb_each < MOST_KB
    assert beside_ms < 2 * alone_ms + SLACK_MS


@pytest.mark.parametrize("first", [b"POST /v1/chat/completions HTT", HEAD], ids=["slowloris", "large heads"])
async def test_others_keep_their_latency_beside_heads_that_never_end(tmp_path: Path, first: bytes) -> None:
    """Whoever is cut off for being slow comes again at once."""
    allow_open_files()

    async def comes_again(port: int) -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            with suppress(ConnectionResetError):
                await reader.read()
            writer.close()

    server = await asyncio.get_running_loop().create_server(MockConnection, "127.0.0.1", 0)
    engine_port = server.sockets[0].getsockname()[1]
    with worker_process(document(engine_port), free_ports(1), tmp_path) as worker:
        await measured(worker, "warming up")
        alone_ms = await measured(worker, "alone")
        before_mb = worker.rss_mb()
        flood = [asyncio.create_task(comes_again(worker.port)) for _ in range(FLOOD)]
        await asyncio.sleep(SECONDS)
        beside_ms = await measured(worker, f"beside {FLOOD} heads of {len(first)} bytes")
        print(f"{FLOOD} heads: {(worker.rss_mb() - before_mb) * 1000 / FLOOD:.1f} KB each")
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
    server.close()
    assert beside_ms < 2 * alone_ms + SLACK_MS
