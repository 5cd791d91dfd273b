"""The heart of a simulated engine: it drives the batching model at the pace the model dictates.

One task an engine: plan a step, wait until it would be over, hand its tokens to whoever listens. Steps follow an
absolute schedule, so lateness of the machine does not add up: a late step shortens the waits that follow it.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import count

from router.engine.clock import StepClock
from router.engine.generation import FinishReason
from router.engine.metrics import EngineCounters
from router.engine.sequence import Listener, Sequence
from router.sim.engine import Engine
from router.sim.kv_cache import KvEvent
from router.sim.step import EngineRequest, StepResult

EventSink = Callable[[list[KvEvent], Callable[[str], Sequence | None]], None]
"""Takes what happened to the cache, and a way to find the sequence of a request id."""


class Stepper:
    """Drives one engine model; ``speedup`` > 0 divides every duration."""

    def __init__(
        self,
        model: Engine,
        clock: StepClock,
        speedup: float,
        counters: EngineCounters,
        publish: EventSink | None = None,
    ) -> None:
        self.model = model
        self.lag_s = 0.0
        self._clock = clock
        self._speedup = speedup
        self._counters = counters
        self._publish = publish
        self._sequences: dict[str, Sequence] = {}
        self._departed: dict[str, Sequence] = {}
        self._ids = count()
        self._work = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def idle(self) -> bool:
        """Whether no sequence is here."""
        return not self._sequences

    def submit(self, sequence: Sequence) -> None:
        """Queue a sequence behind all others."""
        sequence.id = f"{next(self._ids)}"
        sequence.arrived_s = self._clock.monotonic_s()
        self.model.submit(EngineRequest(sequence.id, sequence.prompt_tokens, sequence.output_tokens, sequence.chain))
        self._sequences[sequence.id] = sequence
        self._work.set()
        self._empty.clear()

    async def drained(self) -> None:
        """Wait until no sequence is here."""
        await self._empty.wait()

    def drop(self, sequences: Iterable[Sequence]) -> None:
        """Forget sequences whose client has gone; those that have ended already are ignored."""
        for sequence in sequences:
            if sequence.id in self._sequences:
                self._forget(sequence)
                self._depart(sequence)

    def abort_all(self) -> None:
        """End every sequence with the reason ``abort`` and tell its listener."""
        sequences = list(self._sequences.values())
        self.drop(sequences)
        for sequence in sequences:
            sequence.listener.aborted(sequence)

    def take_listeners(self) -> list[Listener]:
        """Drop every sequence without a word and return their listeners, each once."""
        sequences = list(self._sequences.values())
        self.drop(sequences)
        return list(dict.fromkeys(sequence.listener for sequence in sequences))

    def reset_prefix_cache(self) -> bool:
        """Empty the prefix cache; refused while a request runs. The event goes out with the next step."""
        return self.model.cache.clear()

    async def run(self) -> None:
        """Step for ever."""
        due_s = self._clock.monotonic_s()
        while True:
            step = self.model.begin_step()
            if step is None:
                self._work.clear()
                await self._work.wait()
                due_s = self._clock.monotonic_s()
                continue
            due_s += step.duration_s / self._speedup
            await self._clock.sleep_until(due_s)
            now_s = self._clock.monotonic_s()
            self.lag_s = max(0.0, now_s - due_s)
            self._deliver(self.model.finish_step(), now_s)

    def _deliver(self, result: StepResult, now_s: float) -> None:
        if self._publish is not None and result.kv_events:
            self._publish(result.kv_events, self._find)
        self._departed.clear()
        for first in result.first_tokens:
            self._first_token(first.request_id, first.cached_tokens, now_s)
        for request_id in result.tokens:
            sequence = self._sequences.get(request_id)
            if sequence is not None:
                self._token(sequence, now_s)

    def _find(self, request_id: str) -> Sequence | None:
        return self._sequences.get(request_id) or self._departed.get(request_id)

    def _first_token(self, request_id: str, cached_tokens: int, now_s: float) -> None:
        sequence = self._sequences.get(request_id)
        if sequence is None:
            return
        sequence.cached_tokens = cached_tokens
        self._counters.prompt_tokens += sequence.prompt_tokens
        self._counters.ttft_s.observe(now_s - sequence.arrived_s)

    def _token(self, sequence: Sequence, now_s: float) -> None:
        counters = self._counters
        counters.generation_tokens += 1
        if sequence.emitted:
            counters.inter_token_s.observe(now_s - sequence.last_token_s)
        sequence.advance(now_s)
        if sequence.reason is not None:
            self._forget(sequence)
            self._count_end(sequence, sequence.reason, now_s)
        sequence.listener.token(sequence)

    def _forget(self, sequence: Sequence) -> None:
        del self._sequences[sequence.id]
        if not self._sequences:
            self._empty.set()

    def _depart(self, sequence: Sequence) -> None:
        """Remove a sequence from the model; its blocks may still be reported with the step under way."""
        self._departed[sequence.id] = sequence
        self.model.abort(sequence.id)
        self._count_end(sequence, FinishReason.ABORT, self._clock.monotonic_s())

    def _count_end(self, sequence: Sequence, reason: FinishReason, now_s: float) -> None:
        counters = self._counters
        counters.finished[reason] += 1
        counters.e2e_s.observe(now_s - sequence.arrived_s)
        counters.request_prompt_tokens.observe(sequence.prompt_tokens)
        counters.request_generation_tokens.observe(sequence.emitted)
