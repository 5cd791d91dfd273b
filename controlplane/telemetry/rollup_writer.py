"""Writes roll-ups of this process's snapshots, one bucket after the other, in a thread of its own.

A bucket is written once, when its time is over, also when no further snapshot arrives. A process that is killed loses
the bucket that it was filling, which is at most ten seconds of telemetry.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from asgiref.sync import sync_to_async

from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup, bucket_of_time
from router.ports import Clock
from router.snapshot import Snapshot

logger = logging.getLogger(__name__)


class RollupWriter:
    """Belongs to one event loop at a time."""

    def __init__(self, clock: Clock, write: Callable[[Sequence[WorkerRollup]], None]) -> None:
        self._clock = clock
        self._write = write
        self._filling: dict[str, WorkerRollup] = {}
        self._bucket = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, snapshot: Snapshot) -> None:
        """Count a snapshot into the bucket of this moment."""
        bucket = bucket_of_time(self._clock.unix_s())
        if bucket != self._bucket:
            self._flush()
            self._bucket = bucket
            self._set_timer()
        row = self._filling.setdefault(snapshot.worker, WorkerRollup(worker=snapshot.worker, bucket=bucket))
        row.add(snapshot)

    async def drained(self) -> None:
        """Wait until everything that was handed over is written."""
        await asyncio.gather(*self._tasks)

    def close(self) -> None:
        """Stop the timer; what is being filled is written by nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        delay_s = max(0.0, self._bucket + BUCKET_S - self._clock.unix_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._flush)

    def _flush(self) -> None:
        self.close()
        full, self._filling = list(self._filling.values()), {}
        if full:
            task = asyncio.create_task(self._written(full), name="write-rollups")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _written(self, full: Sequence[WorkerRollup]) -> None:
        try:
            await sync_to_async(self._write, thread_sensitive=False)(full)
        except Exception:  # the next bucket may be luckier; telemetry must never end the web process
            logger.exception("could not write the roll-ups of bucket %s", full[0].bucket)
