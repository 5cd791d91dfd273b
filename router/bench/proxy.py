"""What the data plane costs: a worker on a core of its own, between clients and engines that answer at once.

The robust figures are CPU microseconds of the worker. Latencies are differences of medians, through the worker less
direct, at a low rate. Needs Linux; clients and engines share the other cores.
"""

import argparse
import asyncio
import socket
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec
import orjson
import uvloop

from router.bench.closed_loop import LoopPlan, Seen, run_loop
from router.bench.mock_engine import CHUNKS, FAST, READING, MockConnection
from router.bench.prompts import Prompts
from router.bench.worker_process import WorkerProcess, worker_process
from router.compiled import is_compiled
from router.config import ConfigDocument, InstanceConfig

HELP = "measure a worker between clients and mock engines"
ENGINES = 4
BUSY_CLIENTS = 64
CALM_CLIENTS = 4
CALM_THINK_S = 0.02
PACED_STREAMS = 192
READING_STREAMS = 500
SMALL = Prompts(900, 0, 1)
LARGE = Prompts(32_000, 24_000, 2)
UNIQUE = Prompts(8_000, 0, 3)


class Measured(msgspec.Struct, frozen=True):
    """One loop of clients, and what the worker used meanwhile."""

    seen: Seen
    cpu_us_per_request: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--seconds", type=float, default=2.5, help="length of each measurement (2.5)")
    parser.add_argument("--soak-seconds", type=float, default=5.0, help="how long unique prompts are sent (5)")


def measure(args: argparse.Namespace) -> dict[str, float | str]:
    """Measure as the command line asks."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(args.seconds, args.soak_seconds))


async def _measure(seconds: float, soak_seconds: float) -> dict[str, float | str]:
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(MockConnection, "127.0.0.1", 0) for _ in range(ENGINES)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    with (
        tempfile.TemporaryDirectory() as folder,
        worker_process(_document(ports), _free_port(), Path(folder)) as worker,
    ):
        figures = await _figures(worker, ports[0], seconds, soak_seconds)
    for server in servers:
        server.close()
    return figures


async def _figures(
    worker: WorkerProcess, direct_port: int, seconds: float, soak_seconds: float
) -> dict[str, float | str]:
    await _loop(worker, worker.port, min(1.0, seconds), _bodies(SMALL))
    started_mb = worker.rss_mb()
    small = await _loop(worker, worker.port, seconds, _bodies(SMALL))
    large = await _loop(worker, worker.port, seconds, _bodies(LARGE))
    paced = await _loop(worker, worker.port, seconds, _bodies(SMALL, b'"stream":true', FAST), clients=PACED_STREAMS)
    calm, calm_direct = await _both(worker, direct_port, seconds, b'"stream":false')
    streams, streams_direct = await _both(worker, direct_port, seconds, b'"stream":true')
    readers = [
        await _loop(worker, port, seconds, _bodies(SMALL, b'"stream":true', READING), clients=READING_STREAMS)
        for port in (worker.port, direct_port)
    ]
    gap_s, gap_direct_s = (_quantile(measured.seen.gaps_s, 0.99) for measured in readers)
    await _loop(worker, worker.port, soak_seconds, _bodies(UNIQUE))
    return {
        "compiled": "yes" if is_compiled() else "no",
        "cpu_us_per_request_1kb": small.cpu_us_per_request,
        "cpu_us_per_request_32kb": large.cpu_us_per_request,
        "cpu_us_per_paced_chunk": paced.cpu_us_per_request / (CHUNKS + 1),
        "requests_per_s_1kb": len(small.seen.latencies_s) / seconds,
        "requests_per_s_32kb": len(large.seen.latencies_s) / seconds,
        "added_latency_us_p50": _added_us(calm.seen.latencies_s, calm_direct.seen.latencies_s),
        "added_first_byte_us_p50": _added_us(streams.seen.first_bytes_s, streams_direct.seen.first_bytes_s),
        "added_gap_ms_p99_500_streams": (gap_s - gap_direct_s) * 1e3,
        "failures": float(sum(m.seen.failures for m in (small, large, paced, calm, streams))),
        "rss_mb_started": started_mb,
        "rss_mb_after_unique_prompts": worker.rss_mb(),
    }


async def _both(worker: WorkerProcess, direct_port: int, seconds: float, flag: bytes) -> tuple[Measured, Measured]:
    """Measure at a low rate, through the worker and direct."""
    through = await _loop(worker, worker.port, seconds, _bodies(SMALL, flag), CALM_CLIENTS, CALM_THINK_S)
    direct = await _loop(worker, direct_port, seconds, _bodies(SMALL, flag), CALM_CLIENTS, CALM_THINK_S)
    return through, direct


async def _loop(
    worker: WorkerProcess,
    port: int,
    seconds: float,
    bodies: Iterator[bytes],
    clients: int = BUSY_CLIENTS,
    think_s: float = 0.0,
) -> Measured:
    before_s = worker.cpu_s()
    seen = await run_loop(LoopPlan(port=port, clients=clients, seconds=seconds, think_s=think_s), bodies)
    return Measured(seen, (worker.cpu_s() - before_s) * 1e6 / max(1, len(seen.latencies_s)))


def _bodies(prompts: Prompts, flag: bytes = b'"stream":false', mark: bytes = b"") -> Iterator[bytes]:
    """Yield chat bodies that go on for ever, each with a prompt of its own."""
    for number in count():
        text = prompts.known(number)[: prompts.prompt_bytes // 2].hex()
        message = orjson.dumps({"role": "user", "content": text})
        yield b'{"model":"m",%b,"user":"%b","messages":[%b]}' % (flag, mark, message)


def _document(ports: Sequence[int]) -> ConfigDocument:
    return ConfigDocument(
        revision=1,
        instances=tuple(
            InstanceConfig(id=f"mock-{n}", name=f"mock-{n}", url=f"http://127.0.0.1:{port}")
            for n, port in enumerate(ports)
        ),
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def _added_us(through_s: Sequence[float], direct_s: Sequence[float]) -> float:
    return (_quantile(through_s, 0.5) - _quantile(direct_s, 0.5)) * 1e6


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0
