"""Finds out whether an engine died with the requests that it lost: the question is put to the engine itself."""

import asyncio
from collections.abc import Awaitable, Callable

ANSWER_S = 2.0
"""An engine that does not say within this time is taken to live: it hangs, or has much to do."""

OnTold = Callable[[bool], None]


class Inquest:
    """One engine's; whoever lost a request there shares the next question, and at most one is under way."""

    __slots__ = ("_is_gone", "_task", "_waiting")

    def __init__(self, is_gone: Callable[[], Awaitable[bool]]) -> None:
        self._is_gone = is_gone
        self._waiting: list[OnTold] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, told: OnTold) -> None:
        """Have ``told`` called, later and once, with whether the engine is gone."""
        self._waiting.append(told)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Ask no more: nobody will know."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._tell(self._take(), False)

    async def _run(self) -> None:
        while self._waiting:
            asking = self._take()  # a loss that comes later has its own question: the engine may have died since
            gone = False
            try:
                gone = await self._is_gone()
            finally:
                if not self._waiting:
                    self._task = None
                self._tell(asking, gone)

    def _take(self) -> list[OnTold]:
        waiting, self._waiting = self._waiting, []
        return waiting

    @staticmethod
    def _tell(waiting: list[OnTold], gone: bool) -> None:
        for told in waiting:
            told(gone)
