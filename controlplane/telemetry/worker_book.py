"""The newest snapshot of each router worker, and how long ago it came.

A snapshot is ordered by ``(started_unix_s, seq)``: a restarted worker begins a new life with a later start, so its
``seq`` may go back; what arrives out of order is refused, because gauges must not go back. So is all that an older
process says while a younger one of its name is live: that is no restart but two workers with one name, and it is told
(:meth:`WorkerBook.is_namesake`). Ages are measured with this process's monotonic clock, never by comparing clocks of
two machines.
"""

from collections.abc import Iterator
from math import inf

import msgspec

from router.snapshot import Snapshot

LIVE_FOR_S = 3.0
"""A worker silent for longer no longer counts into live sums; its last values are shown as stale."""
FORGET_AFTER_S = 600.0
"""A worker silent for longer is gone."""
NAMESAKE_FOR_S = 15.0
"""For so long a refused process is told of; one that is refused tries again every few seconds."""


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One worker: which configuration it runs, and when it was last heard."""

    name: str
    version: str
    started_unix_s: float
    config_revision: int
    config_error: str | None
    in_flight: int
    prefix_blocks: int
    prefix_capacity_blocks: int
    rss_bytes: int
    age_s: float
    live: bool
    heard_by: str
    """The web process that it delivers to."""
    has_namesake: bool
    """Whether an older process reports under the same name, and is refused."""


class Heard(msgspec.Struct, frozen=True):
    """A snapshot and when it arrived, on this process's monotonic clock."""

    snapshot: Snapshot
    at_s: float
    by: str = ""
    """The web process that it was delivered to."""

    def age_s(self, now_s: float) -> float:
        """Return seconds since it arrived."""
        return max(0.0, now_s - self.at_s)

    def is_live(self, now_s: float) -> bool:
        """Return whether its worker still counts into live sums."""
        return self.age_s(now_s) <= LIVE_FOR_S


class WorkerBook:
    """Who reported what, last."""

    def __init__(self) -> None:
        self._heard: dict[str, Heard] = {}
        self._namesake_s: dict[str, float] = {}
        """By name: when a namesake was last refused."""

    def accept(self, heard: Heard) -> bool:
        """Keep a snapshot if it is newer than the one held; return whether it was."""
        held = self._heard.get(heard.snapshot.worker)
        if held is not None and _order(heard.snapshot) <= _order(held.snapshot):
            return False
        self._heard[heard.snapshot.worker] = heard
        return True

    def is_namesake(self, snapshot: Snapshot, now_s: float) -> bool:
        """Return whether another process that began later is live under the same name; it is remembered for a while."""
        held = self._heard.get(snapshot.worker)
        if held is None or held.snapshot.started_unix_s <= snapshot.started_unix_s or not held.is_live(now_s):
            return False
        self._namesake_s[snapshot.worker] = now_s
        return True

    def forget_silent(self, now_s: float) -> None:
        """Drop workers that have not been heard for ``FORGET_AFTER_S``."""
        for name in [n for n, heard in self._heard.items() if heard.age_s(now_s) > FORGET_AFTER_S]:
            del self._heard[name]
            self._namesake_s.pop(name, None)

    def heard(self) -> Iterator[Heard]:
        """Return the newest snapshot of every worker, by name."""
        return iter([self._heard[name] for name in sorted(self._heard)])

    def statuses(self, now_s: float) -> tuple[WorkerStatus, ...]:
        """Return every worker, by name."""
        return tuple(_status(heard, now_s, self._has_namesake(heard.snapshot.worker, now_s)) for heard in self.heard())

    def _has_namesake(self, name: str, now_s: float) -> bool:
        return now_s <= self._namesake_s.get(name, -inf) + NAMESAKE_FOR_S


def _order(snapshot: Snapshot) -> tuple[float, int]:
    return (snapshot.started_unix_s, snapshot.seq)


def _status(heard: Heard, now_s: float, has_namesake: bool) -> WorkerStatus:
    snapshot = heard.snapshot
    return WorkerStatus(
        name=snapshot.worker,
        version=snapshot.version,
        started_unix_s=snapshot.started_unix_s,
        config_revision=snapshot.config_revision,
        config_error=snapshot.config_error,
        in_flight=snapshot.in_flight,
        prefix_blocks=snapshot.prefix_blocks,
        prefix_capacity_blocks=snapshot.prefix_capacity_blocks,
        rss_bytes=snapshot.rss_bytes,
        age_s=round(heard.age_s(now_s), 2),
        live=heard.is_live(now_s),
        heard_by=heard.by,
        has_namesake=has_namesake,
    )
