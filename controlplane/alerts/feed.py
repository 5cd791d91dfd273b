"""The open alerts, handed to browsers whenever something changes.

Changes of this process wake the feed at once; those of others are seen by a number in the database that is read every
``CHECK_INTERVAL_S``, and only while somebody looks. Each browser has a slot that holds one frame, so that one that
stalls costs nothing and gets the present when it comes back.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec
from asgiref.sync import sync_to_async

from controlplane.alerts.changes import newest_change, subscribe
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.selectors import active_silences, open_alerts, silenced_by
from controlplane.telemetry.feed import Slot

logger = logging.getLogger(__name__)
CHECK_INTERVAL_S = 0.5
MOST_ALERTS = 100


class OpenAlert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert, as sockets send it."""

    id: str
    kind: str
    title: str
    severity: str
    state: str
    summary: str
    labels: dict[str, str]
    started_unix_s: float
    silenced: bool


class AlertsFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is open. Every frame is whole, so any number of them may be missed."""

    change: int
    firing: int
    """Those that nobody has acknowledged or silenced."""
    acknowledged: int
    silenced: int
    alerts: tuple[OpenAlert, ...]
    """The newest, at most ``MOST_ALERTS``."""


def read_frame() -> AlertsFrame:
    """Return the present, from the rows."""
    change, silences = newest_change(), active_silences()
    rows = [(alert, silenced_by(alert, silences) is not None) for alert in open_alerts()]
    firing = sum(alert.life is AlertState.FIRING and not silenced for alert, silenced in rows)
    acknowledged = sum(alert.life is AlertState.ACKNOWLEDGED for alert, _ in rows)
    return AlertsFrame(
        change=change,
        firing=firing,
        acknowledged=acknowledged,
        silenced=len(rows) - firing - acknowledged,
        alerts=tuple(
            OpenAlert(
                id=str(alert.pk),
                kind=alert.kind,
                title=KINDS[alert.kind].title if alert.kind in KINDS else alert.kind,
                severity=alert.severity,
                state=alert.state,
                summary=alert.summary,
                labels=alert.labels,
                started_unix_s=alert.started_at.timestamp(),
                silenced=silenced,
            )
            for alert, silenced in rows[:MOST_ALERTS]
        ),
    )


class AlertsFeed:
    """Belongs to one event loop at a time; :meth:`wake` may be called from any thread."""

    def __init__(self, number: Callable[[], int], make: Callable[[], AlertsFrame]) -> None:
        self._number = number
        self._make = make
        self._slots: dict[Slot, int] = {}
        """The change that each browser was last given; -1 before the first."""
        self._stirred = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def subscribe(self) -> Iterator[Slot]:
        """Yield a slot that is soon filled with the present."""
        slot = Slot()
        self._slots[slot] = -1
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.create_task(self._watch(), name="alerts-feed")
        self._stirred.set()
        try:
            yield slot
        finally:
            del self._slots[slot]
            if not self._slots and self._task is not None:
                self._task.cancel()
                self._task = self._loop = None

    def wake(self, **_: Any) -> None:
        """Look now (receiver of "alerts changed")."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._stirred.set)

    async def _watch(self) -> None:
        while True:
            self._stirred.clear()
            try:
                await self._hand_out()
            except Exception:  # the database may be away for a moment; sockets stay
                logger.exception("could not read the alerts")
            try:
                async with asyncio.timeout(CHECK_INTERVAL_S):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def _hand_out(self) -> None:
        number = await sync_to_async(self._number)()
        if all(given == number for given in self._slots.values()):
            return
        frame = await sync_to_async(self._make)()
        text = msgspec.json.encode(frame).decode()
        for slot, given in self._slots.items():
            if given != frame.change:
                self._slots[slot] = frame.change
                slot.put(text)


@cache
def alerts_feed() -> AlertsFeed:
    """Return the feed of this process."""
    feed = AlertsFeed(newest_change, read_frame)
    subscribe(feed.wake, weak=False)
    return feed
