"""10,000 clients that keep their connections and say nothing, or floods of those that mean no good: do others notice?

``pytest -m benchmark tests/benchmarks/test_idle_connections.py -s``; ``POINTSMAN_IDLE`` sets the number. The worker is
a process of its own, so each side needs descriptors for its own ends alone, and so is a flood
(:mod:`tests.benchmarks.flood`), so that the measure is not that of a client with much else to do.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import pytest

from router.bench.closed_loop import LoopPlan, run_loop
from router.bench.mock_engine import MockConnection
from router.bench.worker_process import WorkerProcess, worker_process
from router.config import ConfigDocument, InstanceConfig, WorkloadConfig
from router.core.policy import Policy
from router.proxy.process import allow_open_files
from tests.benchmarks.flood import KINDS
from tests.ports import free_ports

IDLE = int(os.environ.get("POINTSMAN_IDLE", "10000"))
CLIENTS = 8
SECONDS = 3.0
FLOOD_SECONDS = 11.0
"""So long that the worker cuts off in each round whoever is slow, and these come again."""
ROUNDS = 3
"""The best of so many counts: the machine has other things to do."""
THINK_S = 0.02
AT_ONCE = 200
MOST_KB = 8.0
"""Of resident memory for a connection."""
SLACK_MS = 5.0
"""Beyond twice the latency (p99) that others have alone: wide, for machines that have other things to do."""
MOST_SHARE = 0.3
"""Of a core, for what a flood makes a worker do: CPU time tells it on any machine."""
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


async def settle_down(port: int, path: str = "/livez") -> Idle:
    """Ask something, as a client does, and stay."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def settled(port: int, count: int) -> list[Idle]:
    here: list[Idle] = []
    while len(here) < count:
        here += await asyncio.gather(*(settle_down(port) for _ in range(min(AT_ONCE, count - len(here)))))
    return here


async def measured(worker: WorkerProcess, what: str) -> float:
    """Let a few clients ask for some rounds; print what they saw, and return the best p99 of their latencies in ms."""
    return min([(await one_round(worker, what, SECONDS)).p99_ms for _ in range(ROUNDS)])


class Round(NamedTuple):
    """What clients waited, and how much of a core the worker used."""

    p50_ms: float
    p99_ms: float
    share: float


async def one_round(worker: WorkerProcess, what: str, seconds: float) -> Round:
    cpu_s = worker.cpu_s()
    plan = LoopPlan(port=worker.port, clients=CLIENTS, seconds=seconds, think_s=THINK_S)
    seen = await run_loop(plan, repeat(BODY))
    used_s = worker.cpu_s() - cpu_s
    cuts = quantiles(seen.latencies_s, n=100)
    print(
        f"  {what}: {len(seen.latencies_s)} requests, latency p50 {cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f}, "
        f"most {max(seen.latencies_s) * 1e3:.2f}; CPU {used_s * 1e6 / len(seen.latencies_s):.0f} us a request, "
        f"{used_s / seconds * 100:.0f} % of a core, {worker.rss_mb():.0f} MB"
    )
    assert seen.failures == 0
    return Round(cuts[49] * 1e3, cuts[98] * 1e3, used_s / seconds)


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


@contextmanager
def flooded(kind: str, port: int) -> Iterator[None]:
    """Let a flood do what it does for the length of a block, then print what that was."""
    command = [sys.executable, "-m", "tests.benchmarks.flood", kind, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdin is not None
        assert flood.stdout is not None
        try:
            assert flood.stdout.readline() == "here\n"
            yield
        finally:
            flood.stdin.close()
            told = flood.stdout.read()
    print(f"  {kind}, each second: {', '.join(f'{number} {what}' for what, number in json.loads(told).items())}")


async def left_alone(port: int) -> None:
    """Wait until everybody else is gone."""
    while True:
        reader, writer = await settle_down(port, "/metrics")
        text = (await reader.readuntil(b"pointsman_clients_refused")).decode()
        writer.transport.abort()
        if "\npointsman_clients 1\n" in text:
            return
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("kind", KINDS)
async def test_others_keep_their_latency_beside_a_flood(tmp_path: Path, kind: str) -> None:
    """Alone and beside in turns, and the best of each: what else the machine does only adds."""
    server = await asyncio.get_running_loop().create_server(MockConnection, "127.0.0.1", 0)
    engine_port = server.sockets[0].getsockname()[1]
    alone: list[Round] = []
    beside: list[Round] = []
    with worker_process(document(engine_port), free_ports(1), tmp_path) as worker:
        await one_round(worker, "warming up", SECONDS)
        before_mb = worker.rss_mb()
        for _ in range(ROUNDS):
            alone.append(await one_round(worker, "alone", FLOOD_SECONDS))
            with flooded(kind, worker.port):
                beside.append(await one_round(worker, "beside", FLOOD_SECONDS))
                flooded_mb = worker.rss_mb()
            await left_alone(worker.port)
    server.close()
    p50, p99, share = (min(r[n] for r in beside) for n in range(3))
    p50_alone, p99_alone, _ = (min(r[n] for r in alone) for n in range(3))
    print(
        f"{kind}: p50 {p50:.2f} ms (alone {p50_alone:.2f}), p99 {p99:.2f} ms (alone {p99_alone:.2f}), "
        f"{share * 100:.0f} % of a core, {before_mb:.0f} to {flooded_mb:.0f} MB"
    )
    assert p99 < 2 * p99_alone + SLACK_MS
    assert share < MOST_SHARE
