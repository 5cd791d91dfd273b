"""The laboratory on a real Celery worker: a run to its end, and one whose worker is killed."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from controlplane.lab import selectors, tasks
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation
from controlplane.lab.services.claims import SILENT_FOR
from controlplane.lab.services.simulations import cancel_simulation
from tests.controlplane.celery_worker import read_until, running_worker
from tests.controlplane.conftest import ACTOR
from tests.controlplane.lab.test_execution import LONG
from tests.patience import PATIENCE_S

Ask = Callable[..., Simulation]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def real_broker() -> Path:
    """The folder of messages, in this test run's own data directory."""
    return Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_in"]))


@pytest.fixture
def worker(real_broker: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """A worker with threads, as `pointsman up` runs it."""
    with running_worker("threads") as process:
        yield process


async def settled(simulation: Simulation, *states: State) -> Simulation:
    """Wait until a simulation is in one of some states."""
    async with asyncio.timeout(PATIENCE_S):
        while (row := await Simulation.objects.aget(pk=simulation.pk)).life not in states:
            await asyncio.sleep(0.02)
    return row


def children(simulation: Simulation) -> list[int]:
    """Return the processes that run a simulation."""
    found = subprocess.run(["pgrep", "-f", f"/{simulation.pk}-"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split() if int(pid) != os.getpid()]


async def until(holds: Callable[[], Any]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


async def test_two_run_one_after_the_other(worker: subprocess.Popen[str], ask: Ask) -> None:
    await read_until(worker, " ready.")
    first, second = await sync_to_async(lambda: (ask(), ask()))()
    row = await settled(second, State.DONE, State.FAILED)
    assert row.life is State.DONE, row.reason
    before = await settled(first, State.DONE)
    assert before.ended_at is not None
    assert row.started_at is not None
    assert before.ended_at <= row.started_at
    assert len((await sync_to_async(selectors.comparison)(first.pk)).runs) == 2


async def test_cancelling_ends_the_process(worker: subprocess.Popen[str], ask: Ask) -> None:
    await read_until(worker, " ready.")
    made = await sync_to_async(lambda: ask(**LONG))()
    await until(lambda: children(made))
    await sync_to_async(cancel_simulation)(actor=ACTOR, simulation_id=made.pk)
    await until(lambda: not children(made))


async def test_stopping_the_worker_gives_the_run_back(worker: subprocess.Popen[str], ask: Ask) -> None:
    await read_until(worker, " ready.")
    made = await sync_to_async(lambda: ask(**LONG))()
    await settled(made, State.RUNNING)
    await until(lambda: children(made))
    worker.terminate()
    row = await settled(made, State.QUEUED)
    assert row.attempts == 0
    await until(lambda: not children(made))
    assert await asyncio.to_thread(worker.wait, PATIENCE_S) == 0


async def test_killing_the_worker_ends_the_process_and_queues_the_run_again(
    worker: subprocess.Popen[str], ask: Ask
) -> None:
    await read_until(worker, " ready.")
    made = await sync_to_async(lambda: ask(**LONG))()
    await settled(made, State.RUNNING)
    await until(lambda: children(made))
    worker.kill()
    await until(lambda: not children(made))
    silent_since = timezone.now() - SILENT_FOR - timedelta(seconds=1)
    await Simulation.objects.filter(pk=made.pk).aupdate(seen_at=silent_since)
    await sync_to_async(tasks.sweep)()
    row = await Simulation.objects.aget(pk=made.pk)
    assert (row.life, row.attempts) == (State.QUEUED, 1)
    assert "begins again" in row.reason
