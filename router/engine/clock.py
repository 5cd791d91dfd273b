"""Time for an engine: what :class:`router.ports.Clock` tells, and a way to wait for a moment."""

import asyncio
import time
from typing import Protocol

from router.ports import Clock

SHORTEST_SLEEP_S = 0.0005
"""Waits shorter than this only let other tasks run; the event loop's timers are no finer."""


class StepClock(Clock, Protocol):
    """A clock that can be waited on."""

    async def sleep_until(self, moment_s: float) -> None:
        """Return at or after ``moment_s`` of :meth:`monotonic_s`, after other tasks had their turn."""
        ...


class LoopClock:
    """The real time."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def unix_s(self) -> float:
        return time.time()

    async def sleep_until(self, moment_s: float) -> None:
        delay_s = moment_s - time.monotonic()
        await asyncio.sleep(delay_s if delay_s >= SHORTEST_SLEEP_S else 0)
