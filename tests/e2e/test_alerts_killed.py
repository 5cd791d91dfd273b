"""``kill -9`` of the web process, of Celery, and of both, while alerts are raised, announced and resolved.

Real processes on SQLite; a make-believe router worker reports hot classes, which is the quickest kind of alert. What
must hold in the end: every alert was raised once and is over; whoever was to be told was told of its beginning and then
of its end; what arrived twice says the same twice.
"""

import asyncio
import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from subprocess import Popen

import httpx
import pytest
from msgspec.structs import replace

from router.snapshot import HotClassSample, dump_snapshot
from tests.e2e.plant import Plant
from tests.e2e.processes import running
from tests.fakes.receiver import Got, Receiver
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S

WAVE = 4
"""Alerts that begin together."""
LEASE_S = 12.0
"""Claims of notifications: longer than an attempt, and short enough that what a killed process held is soon free."""
CELERY = """
from datetime import timedelta
import django
django.setup()
from controlplane.alerts.services import outbox
from controlplane.celery import app
outbox.LEASE = timedelta(seconds=%s)
app.worker_main(["worker", "--pool", "threads", "--concurrency", "4", "--loglevel", "INFO", "--without-gossip",
                 "--without-mingle", "--without-heartbeat"])
"""
BEAT = ("-m", "celery", "-A", "controlplane.celery", "beat", "--pidfile=")


class Reporter:
    """A router worker four times a second, for as long as the test lasts; what nobody takes is lost."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._worker = FakeWorker(4, start_unix_s=time.time())
        self.hot: list[str] = []
        """Ids of the classes that it reports as hot."""

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._plant.token_file.read_text().strip()}"}
        async with httpx.AsyncClient(base_url=self._plant.web_url, headers=headers, timeout=2) as client:
            while True:
                classes = tuple(map(_hot_class, self.hot))
                snapshot = replace(self._worker.step(), hot_arrivals=1_000, hot_classes=classes)
                with suppress(httpx.HTTPError):
                    await client.post("/api/v1/router/snapshots/", content=dump_snapshot(snapshot))
                await asyncio.sleep(0.25)


def _hot_class(key: str) -> HotClassSample:
    return HotClassSample(
        id=key,
        model="m",
        prefix_tokens=512,
        requests=500,
        error=0,
        hits=400,
        share=0.5,
        holders=("id-of-gpu-00",),
        ready=4,
        consecutive=0,
        watched=False,
        mitigated=False,
        mitigated_requests=0,
    )


class Processes:
    """The web process and Celery (its worker and its beat), which can be killed and started again, each by itself."""

    def __init__(self, plant: Plant, stack: ExitStack) -> None:
        self._plant = plant
        self._stack = stack
        self.web = self._start_web()
        self.celery = self._start_celery()

    def start_again(self) -> None:
        """Start what is not running."""
        if self.web.poll() is not None:
            self.web = self._start_web()
        if all(process.poll() is not None for process in self.celery):
            self.celery = self._start_celery()

    def _start_web(self) -> "Popen[bytes]":
        return self._stack.enter_context(self._plant.serving())

    def _start_celery(self) -> "tuple[Popen[bytes], Popen[bytes]]":
        return self._start("celery", ["-c", CELERY % LEASE_S]), self._start("beat", BEAT)

    def _start(self, name: str, arguments: Sequence[str]) -> "Popen[bytes]":
        return self._stack.enter_context(running(arguments, self._plant.folder / f"{name}.log", **self._plant.data))


def kill(*processes: "Popen[bytes]") -> None:
    """End processes as ``kill -9`` does, all of them before waiting for any."""
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


@asynccontextmanager
async def reporting(plant: Plant) -> AsyncIterator[Reporter]:
    """Have a make-believe worker report until the block ends."""
    reporter = Reporter(plant)
    task = asyncio.create_task(reporter.run())
    try:
        yield reporter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.timeout(1200)
async def test_nothing_is_lost_and_nothing_is_said_twice_with_two_meanings(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    await asyncio.to_thread(plant.prepare)
    waves = [[f"{wave * 100 + number:016x}" for number in range(WAVE)] for wave in range(3)]
    answers: list[int | None] = [200, None, 200, None, 503, None, 200, None, 503, 200, None, 200]
    with ExitStack() as stack:
        stack.callback(plant.api.close)
        processes = await asyncio.to_thread(Processes, plant, stack)
        async with Receiver(answers) as receiver, reporting(plant) as reporter:
            body = {"name": "hook", "kind": "webhook", "settings": {"url": receiver.url}}
            await asyncio.to_thread(lambda: plant.api.post("/api/v1/channels/", json=body).raise_for_status())

            reporter.hot = waves[0]
            await arrived(receiver, 3)  # one of them hangs now
            kill(*processes.celery)
            await asyncio.to_thread(processes.start_again)

            reporter.hot = waves[0] + waves[1]
            await until(lambda: raised(plant) > WAVE, "an alert of the second wave")
            kill(processes.web)
            await asyncio.to_thread(processes.start_again)

            reporter.hot = waves[0] + waves[1] + waves[2]
            await until(lambda: raised(plant) > 2 * WAVE, "an alert of the third wave")
            kill(processes.web, *processes.celery)
            await asyncio.to_thread(processes.start_again)

            await until(lambda: raised(plant) == 3 * WAVE, "every alert")
            reporter.hot = []
            await until(lambda: quiet_evaluations(plant) >= 2 or settled(plant), "quiet")
            kill(processes.web, *processes.celery)  # while the end is being counted
            await asyncio.to_thread(processes.start_again)
            await until(lambda: settled(plant), "everything is over and told")
            check_what_arrived(receiver.got)
    check_the_rows(plant, [key for wave in waves for key in wave])


def quiet_evaluations(plant: Plant) -> int:
    """Return for how many evaluations an alert has been quiet, at most; 0 where none has."""
    return int(rows(plant, "select coalesce(max(quiet), 0) from alerts_suspicion")[0][0])


async def arrived(receiver: Receiver, count: int) -> None:
    await until(lambda: len(receiver.got) >= count, f"{count} notifications")


async def until(ask: Callable[[], object], what: str) -> None:
    """Ask five times a second until the answer is true."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(ask):
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S:.0f} s: {what}") from None


def rows(plant: Plant, query: str) -> Sequence[tuple[object, ...]]:
    """Read the database past every process."""
    (path,) = (plant.folder / "data").glob("*pointsman*.sqlite3")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE_S)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def raised(plant: Plant) -> int:
    (count,) = rows(plant, "select count(*) from alerts_alert where kind = 'hotspot_class'")[0]
    return int(str(count))


def settled(plant: Plant) -> bool:
    """Say whether every alert of ours is resolved and nothing waits to be sent."""
    (open_alerts,) = rows(
        plant, "select count(*) from alerts_alert where kind = 'hotspot_class' and state != 'resolved'"
    )[0]
    (waiting,) = rows(plant, "select count(*) from alerts_delivery where state = 'pending'")[0]
    return open_alerts == 0 and waiting == 0


def check_what_arrived(got: Sequence[Got]) -> None:
    """What arrived twice says the same twice; nobody is told of an end before its beginning, nor of that after it."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    told: dict[str, list[str]] = defaultdict(list)
    for one in got:
        bodies[one.headers["idempotency-key"]].add(one.body)
        document = json.loads(one.body)
        if document["commonLabels"]["alertname"] == "hotspot_class":
            told[document["groupKey"]].append(document["status"])
    assert all(len(same) == 1 for same in bodies.values())
    assert len(told) == 3 * WAVE
    for statuses in told.values():
        assert statuses == sorted(statuses)
        assert {"firing", "resolved"} == set(statuses)


def check_the_rows(plant: Plant, keys: Sequence[str]) -> None:
    """Every class has one alert, raised once, announced once, resolved once."""
    labels = rows(plant, "select labels from alerts_alert where kind = 'hotspot_class'")
    assert sorted(json.loads(str(row[0]))["prefix_class"] for row in labels) == sorted(keys)
    whats = rows(
        plant,
        "select e.what, count(*) from alerts_timelineentry e join alerts_alert a on a.id = e.alert_id "
        "where a.kind = 'hotspot_class' group by e.what",
    )
    assert dict(whats) == {"fired": len(keys), "notified": len(keys), "resolved": len(keys)}
    states = rows(plant, "select state, count(*) from alerts_delivery group by state")
    assert {state for state, _ in states} == {"delivered"}
