"""The newest frame, handed to each browser through a slot that holds one.

There is no queue: a slot that was not emptied is overwritten, so a browser that stalls costs one reference and a
browser that comes back gets the present. A frame is made and encoded once for all, at most ``1 / MIN_INTERVAL_S`` times
a second while snapshots arrive and every ``IDLE_INTERVAL_S`` while they do not (so that windows slide and ages grow),
and not at all while nobody looks.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from router.ports import Clock

MIN_INTERVAL_S = 0.25
IDLE_INTERVAL_S = 1.0


class Slot:
    """Room for one frame; a newer one replaces it."""

    def __init__(self) -> None:
        self._frame: str | None = None
        self._filled = asyncio.Event()

    def put(self, frame: str) -> None:
        """Replace what is held."""
        self._frame = frame
        self._filled.set()

    async def take(self) -> str:
        """Wait for a frame and empty the slot."""
        await self._filled.wait()
        self._filled.clear()
        frame, self._frame = self._frame, None
        assert frame is not None
        return frame


class Feed:
    """Makes frames while somebody looks. Belongs to one event loop at a time."""

    def __init__(self, make: Callable[[], str], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._slots: set[Slot] = set()
        self._newest: str | None = None
        self._made_s = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._fresh = False

    @property
    def subscribers(self) -> int:
        """How many browsers look."""
        return len(self._slots)

    @contextmanager
    def subscribe(self) -> Iterator[Slot]:
        """Yield a slot that already holds the newest frame; it is given up on leaving."""
        slot = Slot()
        slot.put(self.newest())
        self._slots.add(slot)
        self._schedule()
        try:
            yield slot
        finally:
            self._slots.discard(slot)
            if not self._slots:
                self._cancel()

    def poke(self) -> None:
        """Say that something changed."""
        self._fresh = True
        if self._slots:
            self._schedule()

    def newest(self) -> str:
        """Return the newest frame, made now if the one held is older than ``MIN_INTERVAL_S``."""
        if self._newest is None or self._clock.monotonic_s() - self._made_s >= MIN_INTERVAL_S:
            self._newest = self._make()
            self._made_s = self._clock.monotonic_s()
            self._fresh = False
        return self._newest

    def _schedule(self) -> None:
        self._cancel()
        interval_s = MIN_INTERVAL_S if self._fresh else IDLE_INTERVAL_S
        delay_s = max(0.0, self._made_s + interval_s - self._clock.monotonic_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        frame = self.newest()
        for slot in self._slots:
            slot.put(frame)
        self._schedule()
