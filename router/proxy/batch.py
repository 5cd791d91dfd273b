"""The micro-batch window: requests that arrive within a few milliseconds are decided jointly. Off by default.

Decided one by one, a cold request may take the very instance that holds the prefix of the one behind it. In a batch
those go first that have the most to lose: in the order of the tokens that the best instance for them holds. Each is
booked before the next is decided, as always.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Batched(Protocol):
    """A request, as far as a batch knows it."""

    @property
    def held_blocks(self) -> int:
        """Leading blocks of its prompt at the instance that holds the most of them."""
        ...

    def decide_now(self) -> None:
        """The window is over: decide, unless the request has ended meanwhile."""
        ...


class Batch:
    """Collects requests for a window, which begins with the first of them."""

    def __init__(self, call_later: Callable[[float, Callable[[], None]], asyncio.TimerHandle]) -> None:
        self._call_later = call_later
        self._waiting: list[Batched] = []
        self._timer: asyncio.TimerHandle | None = None
        self.window_s = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: Batched) -> None:
        """Let a request wait for the end of the window."""
        self._waiting.append(request)
        if self._timer is None:
            self._timer = self._call_later(self.window_s, self.flush)

    def flush(self) -> None:
        """End the window: decide everything in it, those with the most to lose first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if len(waiting) > 1:
            waiting.sort(key=lambda request: -request.held_blocks)
        for request in waiting:
            request.decide_now()
