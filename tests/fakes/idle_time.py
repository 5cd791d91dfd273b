"""An event loop whose time passes only while nobody has anything to do, and then at once.

What a machine needs for its work takes no time on such a loop: what is measured there with real sockets is the same on
every machine, however busy. For what lives in one thread: whatever another thread or process does meanwhile would be
no time at all, or for ever.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
QUIET_S = 0.001
"""How long (by the clock of the machine) no socket may have anything to read before time goes on."""


class IdleTimeLoop(asyncio.SelectorEventLoop):
    """Time begins at 0."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        """Return the seconds that were waited for so far."""
        return self._now_s

    def skip(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += seconds


class _Skipping(selectors.DefaultSelector):  # type: ignore[valid-type, misc]
    """Waits only for what is under way between sockets; the rest of a wait is skipped."""

    def __init__(self, loop: IdleTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready."""
        if timeout is None or timeout <= 0:
            return list(super().select(timeout))
        ready = list(super().select(QUIET_S))
        if not ready:
            self._loop.skip(timeout)
        return ready


class IdleClock:
    """The time of such a loop, for an engine."""

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    def unix_s(self) -> float:
        return 1_796_000_000.0 + self.monotonic_s()

    async def sleep_until(self, moment_s: float) -> None:
        await asyncio.sleep(max(0.0, moment_s - self.monotonic_s()))


def in_idle_time(test: Callable[Given, Coroutine[Any, Any, Result]]) -> Callable[Given, Result]:
    """Run a coroutine function on a loop of its own whose time passes only while nobody has anything to do."""

    @functools.wraps(test)
    def run(*args: Given.args, **named: Given.kwargs) -> Result:
        with asyncio.Runner(loop_factory=IdleTimeLoop) as runner:
            return runner.run(test(*args, **named))

    return run
