"""Writes roll-ups of this process's snapshots, one bucket after the other, in a thread of its own.

A bucket is written when its time is over, also when no further snapshot arrives. What cannot wait for that is written
early, and again when the bucket is whole: the last word of a process is always the whole. A process that is told to
end writes what it has; one that is killed loses the bucket that it was filling, at most ten seconds of telemetry.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum

import msgspec
from asgiref.sync import sync_to_async

from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup, bucket_of_time
from router.ports import Clock
from router.snapshot import Snapshot

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0
"""How often it is asked whether what is being filled can wait."""
EARLY_EVERY_S = 2.0
"""The least time between two early writings."""
Urgent = Callable[[Sequence[WorkerRollup]], bool]
"""Says, quickly and without a database, whether roll-ups that are being filled cannot wait until they are whole."""


class Reach(StrEnum):
    """How much of a bucket is written."""

    EARLY = "early"
    WHOLE = "whole"


Write = Callable[[Sequence[WorkerRollup], Reach], None]


def never(_: Sequence[WorkerRollup]) -> bool:
    """Say that everything can wait."""
    return False


class RollupWriter:
    """Belongs to one event loop at a time."""

    def __init__(self, clock: Clock, write: Write, urgent: Urgent = never) -> None:
        self._clock = clock
        self._write = write
        self._urgent = urgent
        self._filling: dict[str, WorkerRollup] = {}
        self._bucket = 0
        self._look_s = 0.0
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
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_s:
            self._look(now_s)

    async def drained(self) -> None:
        """Wait until everything that was handed over is written."""
        await asyncio.gather(*self._tasks)

    async def finish(self) -> None:
        """Write what is being filled as well, and wait until everything is written."""
        self._flush()
        await self.drained()

    def close(self) -> None:
        """Stop the timer; what is being filled is written by nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, now_s: float) -> None:
        self._look_s = now_s + LOOK_EVERY_S
        filling = list(self._filling.values())
        if self._urgent(filling):
            self._look_s = now_s + EARLY_EVERY_S
            self._hand_over([_copied(row) for row in filling], Reach.EARLY)

    def _set_timer(self) -> None:
        self.close()
        delay_s = max(0.0, self._bucket + BUCKET_S - self._clock.unix_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._flush)

    def _flush(self) -> None:
        self.close()
        full, self._filling = list(self._filling.values()), {}
        if full:
            self._hand_over(full, Reach.WHOLE)

    def _hand_over(self, rows: Sequence[WorkerRollup], reach: Reach) -> None:
        """Write after everything that was handed over before: an early roll-up is never written over a whole one."""
        task = asyncio.create_task(self._written(rows, reach, frozenset(self._tasks)), name="write-rollups")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _written(
        self, rows: Sequence[WorkerRollup], reach: Reach, earlier: Collection[asyncio.Task[None]]
    ) -> None:
        if earlier:
            await asyncio.wait(earlier)
        try:
            await sync_to_async(self._write, thread_sensitive=False)(rows, reach)
        except Exception:  # the next bucket may be luckier; telemetry must never end the web process
            logger.exception("could not write the roll-ups of bucket %s", rows[0].bucket)


def _copied(row: WorkerRollup) -> WorkerRollup:
    """Return a copy that a thread may read while the original is filled further."""
    return msgspec.json.decode(msgspec.json.encode(row), type=WorkerRollup)
