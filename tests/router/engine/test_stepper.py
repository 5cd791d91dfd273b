"""The engine behaves like one: measured on a clock where a step takes exactly what the model says."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G
from router.engine.block_chain import block_chain
from router.engine.errors import ApiError
from router.engine.generation import FinishReason
from router.engine.metrics import EngineCounters
from router.engine.sequence import Sequence
from router.engine.stepper import Stepper
from router.filler import filler
from router.sim.engine import Engine
from tests.fakes.step_clock import VirtualClock
from tests.patience import PATIENCE_S


class Recorder:
    """A listener that notes when its sequence's tokens came."""

    def __init__(self, clock: VirtualClock, on_token: Callable[[int], None] | None = None) -> None:
        self._clock = clock
        self._on_token = on_token
        self.times_s: list[float] = []
        self.ended = asyncio.Event()

    def token(self, sequence: Sequence) -> None:
        self.times_s.append(self._clock.now_s)
        if self._on_token is not None:
            self._on_token(sequence.emitted)
        if sequence.reason is not None:
            self.ended.set()

    def aborted(self, sequence: Sequence) -> None:
        self.ended.set()

    def fail(self, error: ApiError) -> None:
        raise AssertionError(error)

    @property
    def gaps_s(self) -> list[float]:
        return [after - before for before, after in zip(self.times_s, self.times_s[1:], strict=False)]


class Bench:
    """A stepper on a virtual clock. Everything submitted before :meth:`run` arrives at the same moment."""

    def __init__(self, profile: HardwareProfile = A100_80G, speedup: float = 1.0) -> None:
        self.clock = VirtualClock()
        self.counters = EngineCounters()
        self.model = Engine(profile, record_details=True)
        self.stepper = Stepper(self.model, self.clock, speedup, self.counters)

    def submit(
        self, prompt: bytes, output_tokens: int, on_token: Callable[[int], None] | None = None
    ) -> tuple[Sequence, Recorder]:
        recorder = Recorder(self.clock, on_token)
        output = filler(prompt, output_tokens)
        sequence = Sequence(0, prompt, output, FinishReason.LENGTH, recorder)
        sequence.chain = block_chain(prompt + output, 16, seed=0)
        self.stepper.submit(sequence)
        return sequence, recorder

    async def run(self, *recorders: Recorder) -> None:
        task = asyncio.create_task(self.stepper.run())
        async with asyncio.timeout(PATIENCE_S):
            for recorder in recorders:
                await recorder.ended.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def prompt(name: str, tokens: int) -> bytes:
    return filler(name.encode(), tokens)


async def test_a_request_gets_exactly_the_tokens_it_asked_for() -> None:
    bench = Bench()
    sequence, recorder = bench.submit(prompt("a", 100), 37)
    await bench.run(recorder)
    assert len(recorder.times_s) == 37
    assert sequence.reason is FinishReason.LENGTH
    assert bench.counters.generation_tokens == 37
    assert bench.stepper.idle


async def test_steps_take_what_the_cost_model_says() -> None:
    bench = Bench()
    _, recorder = bench.submit(prompt("a", 1000), 3)
    await bench.run(recorder)
    profile = A100_80G
    assert recorder.times_s[0] == pytest.approx(profile.step_s(prefill_tokens=1000))
    assert recorder.gaps_s[0] == pytest.approx(profile.step_s(sequences=1, kv_tokens=1001), rel=1e-6)


async def test_a_speedup_divides_every_duration() -> None:
    plain, fast = Bench(), Bench(speedup=10)
    _, slow_recorder = plain.submit(prompt("a", 1000), 5)
    _, fast_recorder = fast.submit(prompt("a", 1000), 5)
    await plain.run(slow_recorder)
    await fast.run(fast_recorder)
    assert [10 * moment for moment in fast_recorder.times_s] == pytest.approx(slow_recorder.times_s)


async def test_a_cached_prefix_answers_faster() -> None:
    bench = Bench()
    first, first_recorder = bench.submit(prompt("shared", 4000) + prompt("one", 200), 1)
    await bench.run(first_recorder)
    began_s = bench.clock.now_s
    second, second_recorder = bench.submit(prompt("shared", 4000) + prompt("two", 200), 1)
    await bench.run(second_recorder)
    assert first.cached_tokens == 0
    assert second.cached_tokens == 4000
    assert second_recorder.times_s[0] - began_s < first_recorder.times_s[0] / 3


async def test_generated_tokens_are_cached_for_the_next_turn() -> None:
    bench = Bench()
    first, recorder = bench.submit(prompt("a", 160), 160)
    await bench.run(recorder)
    second, recorder = bench.submit(first.prompt + first.output + prompt("b", 32), 1)
    await bench.run(recorder)
    assert second.cached_tokens >= 300


async def test_a_long_prompt_is_chunked_and_delays_the_decodes_beside_it() -> None:
    bench = Bench()
    others: list[Recorder] = []

    def bring_a_long_prompt(emitted: int) -> None:
        if emitted == 5:
            others.append(bench.submit(prompt("long", 20_000), 1)[1])

    _, decoding = bench.submit(prompt("short", 64), 20, bring_a_long_prompt)
    await bench.run(decoding)
    await bench.run(*others)
    slowest = sorted(decoding.gaps_s)[-3:]
    full_step_s = A100_80G.step_s(prefill_tokens=A100_80G.max_batch_tokens)
    assert slowest[1] == pytest.approx(full_step_s, rel=0.01)
    assert sum(gap > 0.1 for gap in decoding.gaps_s) == 3
    assert min(decoding.gaps_s) < 0.01


async def test_a_full_kv_cache_queues_and_preempts_but_everything_ends() -> None:
    bench = Bench(msgspec.structs.replace(A100_80G, kv_capacity_tokens=2048))
    waiting: list[int] = []
    entries = [
        bench.submit(prompt(f"{number}", 400), 300, lambda _: waiting.append(bench.model.waiting))
        for number in range(8)
    ]
    await bench.run(*(recorder for _, recorder in entries))
    assert max(waiting) > 0
    assert bench.model.preemptions > 0
    assert [len(recorder.times_s) for _, recorder in entries] == [300] * 8
    bench.model.check_integrity()


async def test_a_dropped_sequence_gives_everything_back() -> None:
    bench = Bench()
    dropped: list[Sequence] = []
    gone, recorder = bench.submit(prompt("gone", 500), 1000, lambda n: bench.stepper.drop(dropped) if n == 3 else None)
    dropped.append(gone)
    _, other = bench.submit(prompt("stays", 500), 50)
    await bench.run(other)
    assert len(recorder.times_s) == 3
    assert bench.model.running == 0
    assert bench.counters.finished[FinishReason.ABORT] == 1
    bench.model.check_integrity()


async def test_dropping_twice_or_after_the_end_changes_nothing() -> None:
    bench = Bench()
    sequence, recorder = bench.submit(prompt("a", 10), 2)
    await bench.run(recorder)
    bench.stepper.drop([sequence, sequence])
    assert bench.counters.finished[FinishReason.ABORT] == 0
    assert bench.counters.finished[FinishReason.LENGTH] == 1
