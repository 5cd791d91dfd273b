"""Clocks for simulated engines: virtual time that passes at once, and time that only passes when a test lets it."""

import asyncio


class VirtualClock:
    """Every wait is over at once, and takes exactly as long as asked on this clock."""

    def __init__(self, start_s: float = 0.0) -> None:
        self.now_s = start_s

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return 1_796_000_000.0 + self.now_s

    async def sleep_until(self, moment_s: float) -> None:
        self.now_s = max(self.now_s, moment_s)
        await asyncio.sleep(0)


class GatedClock(VirtualClock):
    """Waits are over when the test allows so many steps; :meth:`open` lets everything pass from then on."""

    def __init__(self) -> None:
        super().__init__()
        self._permits = asyncio.Semaphore(0)
        self._opened = asyncio.Event()

    def allow(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._permits.release()

    def open(self) -> None:
        self._opened.set()
        self._permits.release()

    async def sleep_until(self, moment_s: float) -> None:
        if not self._opened.is_set():
            await self._permits.acquire()
            if self._opened.is_set():
                self._permits.release()
        await super().sleep_until(moment_s)
