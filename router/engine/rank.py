"""One data-parallel rank of a simulated engine: a batching model, what drives it, and its KV events.

An engine without data parallelism is one rank. Ranks share the HTTP server and nothing else: each has its own cache.
"""

import asyncio
from collections.abc import Callable

import zmq

from router.core.hardware import HardwareProfile
from router.engine.clock import StepClock
from router.engine.kv_events import EventEncoder
from router.engine.kv_publisher import EventEndpoints, KvPublisher
from router.engine.metrics import EngineCounters, EngineGauges, RankMetrics
from router.engine.sequence import Sequence
from router.engine.stepper import Stepper
from router.sim.engine import Engine
from router.sim.kv_cache import KvEvent


class EngineRank:
    """Model, stepper and event sockets. :meth:`start` once, :meth:`stop` once."""

    def __init__(
        self, number: int, profile: HardwareProfile, block_tokens: int, speedup: float, clock: StepClock
    ) -> None:
        self.number = number
        self.counters = EngineCounters()
        self.model = Engine(profile, block_tokens, record_details=True)
        self.stepper = Stepper(self.model, clock, speedup, self.counters, self._publish)
        self._clock = clock
        self._encoder: EventEncoder | None = None
        self._publisher: KvPublisher | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def endpoints(self) -> EventEndpoints | None:
        """Where events are published; None when they are not."""
        return None if self._publisher is None else self._publisher.endpoints

    @property
    def published(self) -> int:
        """How many batches of events were published."""
        return 0 if self._publisher is None else self._publisher.published

    def publish_to(self, endpoints: EventEndpoints, adapters: tuple[str, ...]) -> None:
        """Bind the event sockets.

        :raises OSError: when a port is taken.
        """
        self._encoder = EventEncoder(self.model.kv_block_tokens, adapters, self.number)
        try:
            self._publisher = KvPublisher(endpoints)
        except zmq.ZMQError as error:
            raise OSError(error.errno, f"KV events on {endpoints.events}: {error.strerror}") from error
        self._publisher.start()

    def start(self, on_end: Callable[["asyncio.Task[None]"], None]) -> None:
        """Begin to step; ``on_end`` is called when stepping ends, for whatever reason."""
        self._task = asyncio.get_running_loop().create_task(self.stepper.run())
        self._task.add_done_callback(on_end)

    async def stop(self) -> None:
        """End stepping and close the sockets."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._publisher is not None:
            await self._publisher.close()

    def metrics(self) -> RankMetrics:
        """Return what the rank is doing."""
        model = self.model
        gauges = EngineGauges(
            running=model.running,
            waiting=model.waiting,
            kv_use=model.kv_use,
            preemptions=model.preemptions,
            prefix_queries=model.prefix_queries,
            prefix_hits=model.prefix_hits,
            block_tokens=model.kv_block_tokens,
            kv_blocks=model.cache.capacity,
            lag_s=self.stepper.lag_s,
        )
        return RankMetrics(self.number, self.counters, gauges)

    def _publish(self, events: list[KvEvent], find: Callable[[str], Sequence | None]) -> None:
        if self._publisher is not None and self._encoder is not None:
            self._publisher.publish(self._encoder.batch(self._clock.unix_s(), events, find))
