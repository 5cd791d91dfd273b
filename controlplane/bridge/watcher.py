"""Waking long polls: at once for changes of this process, by a cheap check for changes of others.

Waiters of any event loop wait here; :meth:`Watcher.wake` may be called from any thread. While somebody waits, each loop
runs one checker that asks for the newest revision every ``CHECK_INTERVAL_S``; while nobody does, nothing runs.
"""

import asyncio
import threading

CHECK_INTERVAL_S = 0.2


class Watcher:
    """Events to set when something may have been published."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def wake(self) -> None:
        """Have every waiter look again, now."""
        with self._lock:
            waiting = list(self._waiting.items())
        for event, loop in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def watch(self) -> "Watch":
        """Return a context in which nothing that is published goes unnoticed."""
        return Watch(self)

    def add(self, event: asyncio.Event) -> None:
        """Set an event of the running loop from now on."""
        with self._lock:
            self._waiting[event] = asyncio.get_running_loop()

    def remove(self, event: asyncio.Event) -> None:
        """Stop setting an event."""
        with self._lock:
            self._waiting.pop(event, None)


class Watch:
    """One waiter. Between two calls of :meth:`changed` nothing is lost: a wake is remembered."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._event = asyncio.Event()

    def __enter__(self) -> "Watch":
        self._watcher.add(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        self._watcher.remove(self._event)

    async def changed(self, timeout_s: float) -> None:
        """Return when woken, or after ``min(timeout_s, CHECK_INTERVAL_S)`` seconds."""
        try:
            async with asyncio.timeout(min(timeout_s, CHECK_INTERVAL_S)):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()


WATCHER = Watcher()
"""The watcher of this process."""
