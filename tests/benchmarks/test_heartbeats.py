"""1,000 instances that send a heartbeat every 10 seconds, on SQLite: how long does the API take?"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = 1_000
PERIOD_S = 10.0
ROUNDS = 3
LIMIT_P95_S = 0.1
NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=200)
"""Open loop: a slow answer must not hold back the heartbeats after it."""
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def run(data_dir: Path, *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(data_dir), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def environment(data_dir: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}}
    return kept | {"POINTSMAN_DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "controlplane.settings"}


class Timings:
    """Latencies of one kind of request."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def call(self, client: httpx.AsyncClient, method: str, path: str, body: object = None) -> httpx.Response:
        began_s = time.perf_counter()
        answer = await client.request(method, path, json=body)
        self.seconds.append(time.perf_counter() - began_s)
        answer.raise_for_status()
        return answer

    def line(self, name: str) -> str:
        cuts = statistics.quantiles(self.seconds, n=100)
        return f"{name}: n={len(self.seconds)} p50={cuts[49] * 1e3:.1f} ms p95={cuts[94] * 1e3:.1f} ms"

    @property
    def p95_s(self) -> float:
        return statistics.quantiles(self.seconds, n=100)[94]


async def drive(url: str, token: str) -> dict[str, Timings]:
    found = {"register": Timings(), "heartbeat": Timings(), "list": Timings(), "read": Timings()}
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60, limits=NO_LIMITS) as client:
        for number in range(INSTANCES):
            body = {"url": f"http://10.{number // 65_536}.{number // 256 % 256}.{number % 256}:8000", "lease_s": 60}
            await found["register"].call(client, "PUT", f"/api/v1/instances/gpu-{number}/", body)

        async def beat(number: int) -> None:
            for turn in range(ROUNDS):
                await asyncio.sleep(max(0.0, began_s + (turn + number / INSTANCES) * PERIOD_S - time.perf_counter()))
                await found["heartbeat"].call(client, "POST", f"/api/v1/instances/gpu-{number}/heartbeat/")

        async def look() -> None:
            while time.perf_counter() < began_s + ROUNDS * PERIOD_S:
                await found["list"].call(client, "GET", "/api/v1/instances/?page_size=50")
                await found["read"].call(client, "GET", "/api/v1/instances/gpu-7/")
                await asyncio.sleep(0.2)

        began_s = time.perf_counter()
        await asyncio.gather(look(), *(beat(number) for number in range(INSTANCES)))
    return found


def test_1000_instances_beat_every_10_s(tmp_path: Path) -> None:
    for database in ("default", "telemetry"):
        run(tmp_path, "migrate", "--database", database, "-v0")
    token = run(tmp_path, "token", "create", "--name", "bench", "--scopes", "instances,read")
    port = free_ports(1)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "controlplane.asgi:application", "--port", str(port)),
            *("--lifespan", "off", "--log-level", "warning"),
        ],
        cwd=ROOT,
        env=environment(tmp_path),
    )
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client() as client:
            for _ in range(200):
                try:
                    client.get(f"{url}/readyz").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
        found = asyncio.run(drive(url, token))
    finally:
        server.terminate()
        server.wait(20)
    print()
    for name, timings in found.items():
        print(timings.line(name))
    assert found["heartbeat"].p95_s < LIMIT_P95_S
    assert found["list"].p95_s < LIMIT_P95_S
