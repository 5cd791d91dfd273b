"""One engine placed in time: when its present step began, and when it will end."""

from router.core.hardware import HardwareProfile
from router.sim.engine import NO_LIMIT, Engine
from router.sim.errors import EngineFault
from router.sim.step import EngineRequest, Step, StepResult
from router.state.report import EngineReport


class Node:
    """An engine and its step under way. Times are in picoseconds since the start of the run.

    ``generation`` numbers planned ends: an end that was planned earlier is void.
    """

    __slots__ = ("_begun_ps", "_kv_block_tokens", "_planned", "_record", "_step", "engine", "generation", "profile")

    def __init__(self, profile: HardwareProfile, kv_block_tokens: int, *, record_details: bool) -> None:
        self.profile = profile
        self._kv_block_tokens = kv_block_tokens
        self._record = record_details
        self.engine = Engine(profile, kv_block_tokens, record_details=record_details)
        self.generation = 0
        self._step: Step | None = None
        self._planned = 0
        self._begun_ps = 0

    def submit(self, request: EngineRequest, now_ps: int) -> int | None:
        """Queue a request; return when the step under way ends, if that is news.

        :raises RequestTooLarge: when it can never fit.
        """
        engine = self.engine
        blocked = engine.waiting > 0 or engine.running >= self.profile.max_sequences
        engine.submit(request)
        step = self._step
        if step is None:
            return self.begin(now_ps)
        if blocked or self._planned == 1:
            return None
        steps = step.steps_until(now_ps - self._begun_ps)
        if steps >= self._planned:
            return None
        self._planned = steps
        self.generation += 1
        return self._begun_ps + step.completed_ps(steps)

    def begin(self, now_ps: int) -> int | None:
        """Begin the next step, or run of decode steps; return when it ends, or None when there is nothing to do."""
        step = self.engine.begin_step(NO_LIMIT)
        self._step = step
        if step is None:
            return None
        self._begun_ps = now_ps
        self._planned = step.steps
        self.generation += 1
        return now_ps + step.duration_ps

    def finish(self) -> StepResult:
        """Finish what was planned; called at the time that was returned for it."""
        self._step = None
        return self.engine.finish_step(self._planned)

    def restart(self) -> None:
        """Lose everything: requests, cache and counters."""
        self.engine = Engine(self.profile, self._kv_block_tokens, record_details=self._record)
        self._step = None
        self.generation += 1

    def report(self, now_ps: int, *, exact_queue: bool) -> EngineReport:
        """Say what an engine's metrics show at this moment."""
        engine = self.engine
        queued = engine.uncached_waiting_tokens if exact_queue else None
        return EngineReport(
            running=engine.running, waiting=engine.waiting, kv_use=self._kv_use(now_ps), queued_prefill_tokens=queued
        )

    def _kv_use(self, now_ps: int) -> float:
        step = self._step
        if step is None:
            return self.engine.kv_use
        if now_ps < self._begun_ps:
            raise EngineFault("a report from before the step under way")
        return self.engine.kv_use_after(step.steps_until(now_ps - self._begun_ps))
