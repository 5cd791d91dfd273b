"""Snapshots that keep coming, as from a router worker that lives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controlplane.telemetry.feed import MIN_INTERVAL_S
from controlplane.telemetry.hub import Hub
from tests.fakes.snapshots import FakeWorker


@asynccontextmanager
async def feeding(hub: Hub, worker: FakeWorker) -> AsyncIterator[None]:
    """Have a worker report four times a second until the block ends."""
    task = asyncio.create_task(_feed(hub, worker))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _feed(hub: Hub, worker: FakeWorker) -> None:
    while True:
        hub.accept(worker.step())
        await asyncio.sleep(MIN_INTERVAL_S)
