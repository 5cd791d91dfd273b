"""Preloads as the pages show them: where each is, and how far an instance is with all of its own."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from controlplane.preloading.lifecycle import PreloadState
from controlplane.preloading.models import Preload, Reason


class Stage(StrEnum):
    """Where a preload is, in people's words."""

    QUEUED = "queued"
    SENDING = "sending"
    HELD = "held"
    SKIPPED = "skipped"
    GIVEN_UP = "given up"


_ENDS = {
    PreloadState.DONE: Stage.HELD,
    PreloadState.SKIPPED: Stage.SKIPPED,
    PreloadState.FAILED: Stage.GIVEN_UP,
}
_WHY = {
    Reason.JOINED: "joined or restarted",
    Reason.WIDEN: "hot prefix",
}


class PreloadRow(NamedTuple):
    """One preload."""

    preload: Preload
    stage: Stage
    why: str


class Progress(NamedTuple):
    """The preloads of one instance since it began (one epoch)."""

    instance: str
    epoch: int
    counts: Mapping[Stage, int]
    newest_at: datetime

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    @property
    def settled(self) -> int:
        """Those that have ended in any way."""
        return self.total - self.counts[Stage.QUEUED] - self.counts[Stage.SENDING]

    @property
    def words(self) -> str:
        """How many are where: "3 held, 1 queued"."""
        return ", ".join(f"{self.counts[stage]} {stage}" for stage in Stage if self.counts[stage])


def preload_row(preload: Preload, now: datetime) -> PreloadRow:
    """Return a preload as it is shown."""
    return PreloadRow(preload, stage_of(preload, now), _WHY[Reason(preload.reason)])


def stage_of(preload: Preload, now: datetime) -> Stage:
    """Return where a preload is at a moment."""
    if preload.life is not PreloadState.PLANNED:
        return _ENDS[preload.life]
    under_way = preload.claimed_until is not None and preload.claimed_until > now
    return Stage.SENDING if under_way else Stage.QUEUED


def progress_of(preloads: Iterable[Preload], now: datetime) -> list[Progress]:
    """Return how far every instance is, the one with the newest preload first; only its newest epoch counts."""
    groups: dict[str, list[Preload]] = defaultdict(list)
    for preload in preloads:
        groups[preload.instance_name].append(preload)
    found = [_progress(name, rows, now) for name, rows in groups.items()]
    return sorted(found, key=lambda one: one.newest_at, reverse=True)


def _progress(name: str, rows: list[Preload], now: datetime) -> Progress:
    epoch = max(row.epoch for row in rows)
    mine = [row for row in rows if row.epoch == epoch]
    counts = Counter(stage_of(row, now) for row in mine)
    return Progress(name, epoch, counts, max(row.created_at for row in mine))
