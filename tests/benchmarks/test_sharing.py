"""What it costs a web process to hear the workers of the others: processor time of each, by how they are set up.

Two workers of 64 instances with 50 requests a second each report four times a second (less on a busy machine); nobody
looks at a page. Printed are milliseconds of processor time for each snapshot that all workers delivered, which every
process hears, and what the stream holds in Redis.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import redis

from router.snapshot import dump_snapshot
from tests.e2e.processes import eventually, is_ready, run_text, running
from tests.fakes.snapshots import FakeWorker
from tests.ports import free_ports
from tests.postgres_server import new_database
from tests.redis_server import redis_url

WORKERS, INSTANCES, RATE, EVERY_S = 2, 64, 50.0, 0.25
WARM_S, MEASURED_S = 5.0, 25.0
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Reporter:
    """A worker that posts snapshots to one web process."""

    def __init__(self, url: str, token: str, number: int) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._worker = FakeWorker(INSTANCES, RATE, name=f"router-{number}", seed=number)
        self.sent = self.largest = 0

    async def run(self, seconds: float) -> None:
        """Report for a while."""
        until_s = time.monotonic() + seconds
        async with httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=10) as client:
            while time.monotonic() < until_s:
                began_s = time.monotonic()
                body = dump_snapshot(self._worker.step(EVERY_S))
                (await client.post("/api/v1/router/snapshots", content=body)).raise_for_status()
                self.sent, self.largest = self.sent + 1, max(self.largest, len(body))
                await asyncio.sleep(max(0.0, began_s + EVERY_S - time.monotonic()))


async def costs(reporters: list[Reporter], pids: list[int]) -> tuple[list[float], float]:
    """Have workers report; return the milliseconds of each process for a snapshot, and the snapshots in a second."""
    tasks = [asyncio.create_task(one.run(WARM_S + MEASURED_S)) for one in reporters]
    await asyncio.sleep(WARM_S)
    began_s, before, sent = time.monotonic(), [processor_s(p) for p in pids], sum(one.sent for one in reporters)
    await asyncio.gather(*tasks)
    took_s, sent = time.monotonic() - began_s, sum(one.sent for one in reporters) - sent
    spent_ms = [(processor_s(pid) - s) / sent * 1e3 for pid, s in zip(pids, before, strict=True)]
    return spent_ms, sent / took_s


@pytest.mark.parametrize(("processes", "shared"), [(1, False), (1, True), (2, True)])
def test_processor_time_of_a_web_process(processes: int, shared: bool, tmp_path: Path) -> None:
    environment: Mapping[str, str] = {
        "POINTSMAN_DATA_DIR": str(tmp_path),
        "POINTSMAN_SECRET_KEY": secrets.token_urlsafe(48),
    }
    with new_database() as database, ExitStack() as stack:
        environment = {**environment, "DATABASE_URL": database} | ({"REDIS_URL": redis_url()} if shared else {})
        run_text(["manage.py", "migrate", "-v0"], **environment)
        create = ["manage.py", "token", "create", "--name", "bench", "--scopes", "router"]
        token = run_text(create, **environment).strip()
        first = free_ports(processes)
        urls = [f"http://127.0.0.1:{port}" for port in range(first, first + processes)]
        pids = []
        for url in urls:
            command = ["-m", "uvicorn", "controlplane.asgi:application", "--port", url.rpartition(":")[2]]
            command += ["--lifespan", "on", "--log-level", "warning"]
            log = tmp_path / f"{url.rpartition(':')[2]}.log"
            pids.append(stack.enter_context(running(command, log, **environment)).pid)
        for url in urls:
            eventually(is_ready(f"{url}/readyz"), "a web process serves")
        reporters = [Reporter(urls[n % len(urls)], token, n) for n in range(WORKERS)]
        spent_ms, rate = asyncio.run(costs(reporters, pids))
        print(f"\n{processes} web processes, {'Redis' if shared else 'no Redis'}: ", end="")
        print(", ".join(f"{one:.2f} ms" for one in spent_ms), f"a snapshot each, at {rate:.1f} a second", end="")
        print(f"; snapshots of up to {max(one.largest for one in reporters) / 1024:.0f} KiB")
        if shared:
            with redis.Redis.from_url(redis_url()) as client:
                streams = list(client.scan_iter("{pointsman:*}:snapshots", count=1000))
                newest = max(streams, key=lambda key: client.xrevrange(key, count=1)[0][0])
                held, bytes_ = client.xlen(newest), client.memory_usage(newest, samples=0)
                print(f"the stream holds {held} snapshots in {bytes_ / 2**20:.1f} MiB")
        assert max(spent_ms) < EVERY_S / WORKERS * 1e3, "a core keeps up"
