"""The live telemetry of this process: everything between a snapshot that arrives and a frame that leaves.

Snapshots are taken and sockets are fed in the event loop; REST views read from threads. A lock keeps every call whole.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock

import msgspec

from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.decision_samples import DecisionSamples
from controlplane.telemetry.door import door_of
from controlplane.telemetry.feed import MIN_INTERVAL_S, Feed
from controlplane.telemetry.feeds import Feeds
from controlplane.telemetry.frame import Frame
from controlplane.telemetry.framing import ColumnMaker, headline, instance_rows, trail_points, workload_rows
from controlplane.telemetry.merged_instance import merge_instances
from controlplane.telemetry.minute import Minute
from controlplane.telemetry.scope import scope_of
from controlplane.telemetry.selection import EVERYTHING, Selection
from controlplane.telemetry.sharing.names import own_name
from controlplane.telemetry.traffic import WINDOW_S
from controlplane.telemetry.trail import Trail
from controlplane.telemetry.worker_book import Heard, WorkerBook, WorkerStatus
from router.ports import Clock
from router.snapshot import Snapshot


class Hub:
    """Takes snapshots, makes frames. ``accept`` and ``feed`` belong to the event loop; any thread may read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._workers = WorkerBook()
        self._minute = Minute()
        self._trail = Trail()
        self._seq = 0
        self._taken_s = 0.0
        self._made: Frame | None = None
        self._columns = ColumnMaker()
        self.is_whole: Callable[[], bool] = lambda: True
        """Whether everything that other web processes hear is heard here, where there are any."""
        self.decisions = DecisionSamples()
        self.feeds = Feeds(self._encoder, clock)

    def accept(self, snapshot: Snapshot, *, heard_by: str = "", age_s: float = 0.0) -> bool:
        """Take one snapshot; return False for one that is older than what is held, which then changes nothing.

        :param heard_by: the web process that it was delivered to; empty: this one.
        :param age_s: how long ago that was.
        """
        heard = Heard(snapshot, self._clock.monotonic_s() - age_s, heard_by or own_name())
        with self._lock:
            taken = self._take(heard)
        if taken:
            self.feeds.poke()
        return taken

    @property
    def feed(self) -> Feed:
        """The feed of everything."""
        return self.feeds.of(EVERYTHING)

    def worker_statuses(self) -> tuple[WorkerStatus, ...]:
        """Return every worker, by name."""
        with self._lock:
            return self._workers.statuses(self._clock.monotonic_s())

    def live_snapshots(self) -> list[Snapshot]:
        """Return the newest snapshot of every worker that is live, by name."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            return [heard.snapshot for heard in self._workers.heard() if heard.is_live(now_s)]

    def snapshots_within(self, seconds: float) -> list[Snapshot]:
        """Return the newest snapshot of every worker that was heard in the last seconds, by name."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            return [heard.snapshot for heard in self._workers.heard() if heard.age_s(now_s) <= seconds]

    def is_namesake(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is refused because another process that began later is live under its name."""
        with self._lock:
            return self._workers.is_namesake(snapshot, self._clock.monotonic_s())

    def frame(self) -> Frame:
        """Return the picture of this moment."""
        with self._lock:
            self._made = self._make_frame(EVERYTHING, self._columns, self._clock.monotonic_s())
            return self._made

    def newest_frame(self) -> Frame:
        """Return the newest frame, made now when the one held is older than browsers would get."""
        made = self._made
        if made is None or self._clock.unix_s() - made.time_unix_s >= MIN_INTERVAL_S:
            return self.frame()
        return made

    def _take(self, heard: Heard) -> bool:
        snapshot, now_s = heard.snapshot, max(heard.at_s, self._taken_s)
        if int(now_s) > int(self._taken_s):
            self._sample_load()
        if not self._workers.accept(heard):
            return False
        self._taken_s = now_s
        self._minute.add(snapshot, now_s)
        self._trail.add(now_s, snapshot.chosen)
        if snapshot.last_decision is not None:
            self.decisions.add(snapshot.last_decision)
        return True

    def _sample_load(self) -> None:
        """Keep the load of the second of the last snapshot: once it is over, or when a frame shows it."""
        self._minute.load.sample(int(self._taken_s), merge_instances(self._workers.heard(), self._taken_s))

    def _make_frame(self, selection: Selection, columns: ColumnMaker, now_s: float) -> Frame:
        self._sample_load()
        self._workers.forget_silent(now_s)
        self._minute.advance(now_s)
        self._seq += 1
        known = merge_instances(self._workers.heard(), now_s)
        instances = [one for one in known if one.serves(selection.model)] if selection.model else known
        scope = scope_of(self._minute, selection, instances, now_s)
        live = [heard.snapshot for heard in self._workers.heard() if heard.is_live(now_s)]
        return Frame(
            seq=self._seq,
            time_unix_s=round(self._clock.unix_s(), 3),
            second=int(now_s),
            window_s=WINDOW_S,
            selection=selection,
            models=tuple(sorted({model for one in known for model in one.models})),
            headline=headline(self._minute, scope, sum(snapshot.in_flight for snapshot in live)),
            instances=instance_rows(instances, self._minute, now_s),
            workloads=workload_rows(self._minute, door_of(live), now_s),
            columns=columns.columns(self._minute, scope, int(now_s)),
            trail=trail_points(self._trail, instances, selection, now_s),
            decision=self.decisions.newest(selection),
            workers=self._workers.statuses(now_s),
            whole=self.is_whole(),
        )

    def _encoder(self, selection: Selection) -> Callable[[], str]:
        columns = ColumnMaker()

        def encoded() -> str:
            if selection == EVERYTHING:
                return msgspec.json.encode(self.frame()).decode()
            with self._lock:
                frame = self._make_frame(selection, columns, self._clock.monotonic_s())
            return msgspec.json.encode(frame).decode()

        return encoded


@cache
def hub() -> Hub:
    """Return the hub of this process."""
    return Hub(SystemClock())
