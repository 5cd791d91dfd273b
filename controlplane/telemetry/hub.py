"""The live telemetry of this process: everything between a snapshot that arrives and a frame that leaves."""

import msgspec

from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.feed import Feed
from controlplane.telemetry.worker_book import WorkerBook, WorkerStatus
from router.ports import Clock
from router.snapshot import Snapshot


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser gets."""

    time_unix_s: float
    workers: tuple[WorkerStatus, ...]
    snapshots: tuple[Snapshot, ...]


class Hub:
    """Takes snapshots, makes frames. Lives in the event loop of the web process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.workers = WorkerBook()
        self.feed = Feed(self._encoded_frame, clock)

    def accept(self, snapshot: Snapshot) -> bool:
        """Take one snapshot; return False for one that is older than what is held."""
        now_s = self._clock.monotonic_s()
        if not self.workers.accept(snapshot, now_s):
            return False
        self.feed.poke()
        return True

    def worker_statuses(self) -> tuple[WorkerStatus, ...]:
        """Return every worker, by name."""
        return self.workers.statuses(self._clock.monotonic_s())

    def frame(self) -> Frame:
        """Return the state of this moment."""
        now_s = self._clock.monotonic_s()
        self.workers.forget_silent(now_s)
        return Frame(
            time_unix_s=self._clock.unix_s(),
            workers=self.workers.statuses(now_s),
            snapshots=tuple(heard.snapshot for heard in self.workers.heard()),
        )

    def _encoded_frame(self) -> str:
        return msgspec.json.encode(self.frame()).decode()


HUB = Hub(SystemClock())
"""The hub of this process."""
