"""Driving engines and small clusters by hand."""

from collections.abc import Iterable, Sequence
from struct import pack

import msgspec

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G
from router.sim.engine import Engine
from router.sim.scenario import Scenario, uniform_fleet
from router.sim.step import EngineRequest, Finish
from router.sim.traces.record import Trace, TraceRequest

PLAIN = HardwareProfile(
    name="plain",
    t0_s=0.010,
    prefill_s_per_token=0.0001,
    decode_s_per_sequence=0.001,
    decode_s_per_kv_token=0.00001,
    kv_capacity_tokens=100_000,
    max_batch_tokens=1000,
    max_sequences=8,
    source="round numbers for tests",
)


def chain(*ids: int) -> bytes:
    """Pack block hashes."""
    return pack(f"<{len(ids)}Q", *ids)


class Run(msgspec.Struct):
    """What came out of an engine, with times in picoseconds."""

    first_ps: dict[str, int] = {}
    cached: dict[str, int] = {}
    end_ps: dict[str, int] = {}
    finish: dict[str, Finish] = {}
    step_s: list[float] = []
    log: list[tuple[int, str, str]] = []


def drive(engine: Engine, arrivals: Iterable[tuple[int, EngineRequest]], limit: int = 1, *, check: bool = True) -> Run:
    """Feed (time in ps, request) pairs in order of time to an engine and run it to the end."""
    run = Run()
    waiting = list(arrivals)
    now = 0
    while True:
        while waiting and waiting[0][0] <= now:
            engine.submit(waiting.pop(0)[1])
        step = engine.begin_step(limit)
        if step is None:
            if not waiting:
                return run
            now = waiting[0][0]
            continue
        steps = step.steps
        if waiting and waiting[0][0] < now + step.duration_ps:
            steps = step.steps_until(waiting[0][0] - now)
        now += step.completed_ps(steps)
        run.step_s.append(step.duration_s)
        result = engine.finish_step(steps)
        if check:
            engine.check_integrity()
        for first in result.first_tokens:
            run.first_ps[first.request_id] = now
            run.cached[first.request_id] = first.cached_tokens
            run.log.append((now, "first", first.request_id))
        for finish in result.finished:
            run.end_ps[finish.request_id] = now
            run.finish[finish.request_id] = finish
            run.log.append((now, "end", finish.request_id))


def trace_of(requests: Sequence[TraceRequest], block_tokens: int = 16) -> Trace:
    """Wrap requests as a trace."""
    return Trace(
        name="test", format="test", block_tokens=block_tokens, requests=tuple(requests), provenance="made by a test"
    )


def scenario_of(requests: Sequence[TraceRequest], instances: int = 2, **changes: object) -> Scenario:
    """Put requests before a fleet of A100s."""
    scenario = Scenario(trace=trace_of(requests), fleet=uniform_fleet(A100_80G, instances), warmup=0.0)
    return msgspec.structs.replace(scenario, **changes)
