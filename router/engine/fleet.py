"""Several simulated engines in one process, on consecutive ports."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from router.engine.clock import StepClock
from router.engine.instance import EngineInstance
from router.engine.options import EngineOptions


class EngineFleet:
    """Engines that start and stop together; use it as an asynchronous context."""

    def __init__(self, options: Sequence[EngineOptions], clock: StepClock) -> None:
        self.instances = tuple(EngineInstance(each, clock) for each in options)
        self._stack = AsyncExitStack()

    async def start(self, host: str, port: int) -> None:
        """Listen on ``port``, ``port + 1``, ... (0: on any free ones); all or none.

        :raises OSError: when a port is taken.
        """
        try:
            for number, instance in enumerate(self.instances):
                self._stack.push_async_callback(instance.stop)
                await instance.start(host, port + number if port else 0)
        except OSError:
            await self._stack.aclose()
            raise

    async def stop(self) -> None:
        """Stop all at the same time."""
        self._stack.pop_all()
        await asyncio.gather(*(instance.stop() for instance in self.instances))
