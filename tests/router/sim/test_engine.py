"""The engine model, against sums done by hand and against itself step by step."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.hardware import HardwareProfile
from router.sim.cost import to_ps
from router.sim.engine import NO_LIMIT, Engine
from router.sim.errors import EngineFault, RequestTooLarge
from router.sim.kv_cache import RemovedBlocks, StoredBlocks
from router.sim.step import EngineRequest
from tests.router.sim.driving import PLAIN, Run, chain, drive

MS = to_ps(0.001)


def request(name: str, prompt: int, output: int, *ids: int) -> EngineRequest:
    return EngineRequest(name, prompt, output, chain(*ids))


def profile(**changes: float) -> HardwareProfile:
    return msgspec.structs.replace(PLAIN, **changes)


def test_one_request_alone_takes_what_the_cost_model_says() -> None:
    run = drive(Engine(PLAIN), [(0, request("r", 500, 4))])
    # One prefill step: 10 ms + 500 * 0.1 ms. Then decode steps over 501, 502 and 503 tokens.
    assert run.first_ps["r"] == 60 * MS
    steps_ms = [10 + 1 + 501 * 0.01, 10 + 1 + 502 * 0.01, 10 + 1 + 503 * 0.01]
    assert run.end_ps["r"] == pytest.approx((60 + sum(steps_ms)) * MS, abs=10)


def test_a_long_prompt_is_computed_in_chunks_of_the_budget() -> None:
    run = drive(Engine(PLAIN), [(0, request("r", 2500, 1))])
    assert run.step_s == pytest.approx([0.110, 0.110, 0.060])
    assert run.first_ps["r"] == run.end_ps["r"] == 280 * MS


def test_a_prefill_delays_the_decodes_beside_it() -> None:
    engine = Engine(PLAIN)
    run = drive(engine, [(0, request("early", 100, 3)), (5 * MS, request("late", 999, 1))])
    # Step 1: 100 prompt tokens. Step 2: one decode and all of the late prompt (the budget is 1000).
    assert run.first_ps["early"] == 20 * MS
    assert run.first_ps["late"] == pytest.approx((20 + 10 + 99.9 + 1 + 1.01) * MS, abs=10)
    assert run.end_ps["early"] == pytest.approx(run.first_ps["late"] + (10 + 1 + 1.02) * MS, abs=10)


def test_decodes_come_out_of_the_token_budget_first() -> None:
    run = drive(Engine(PLAIN), [(0, request("early", 100, 3)), (5 * MS, request("late", 1500, 1))])
    # The late prompt gets 999 tokens beside the decode, then 501 beside the next.
    assert run.step_s[1] == pytest.approx(0.010 + 0.0999 + 0.001 + 0.00101)
    assert run.step_s[2] == pytest.approx(0.010 + 0.0501 + 0.001 + 0.00102)


def test_requests_start_in_order_and_at_most_max_sequences_run() -> None:
    engine = Engine(profile(max_sequences=2))
    run = drive(engine, [(0, request(str(i), 10, 3)) for i in range(5)])
    assert sorted(run.first_ps, key=lambda name: run.first_ps[name]) == ["0", "1", "2", "3", "4"]
    assert run.first_ps["1"] < run.end_ps["0"] <= run.first_ps["2"]


def test_a_repeated_prompt_hits_whole_blocks_but_never_all_of_it() -> None:
    run = drive(Engine(PLAIN), [(0, request("a", 64, 1, 1, 2, 3, 4)), (500 * MS, request("b", 64, 1, 1, 2, 3, 4))])
    assert run.cached == {"a": 0, "b": 48}
    assert run.finish["b"].prefilled_tokens == 16


def test_a_prompt_behind_another_finds_blocks_of_the_same_step() -> None:
    run = drive(Engine(PLAIN), [(0, request("a", 40, 1, 1, 2)), (0, request("b", 50, 1, 1, 2, 3))])
    assert run.cached["b"] == 32
    assert run.first_ps["a"] == run.first_ps["b"]


def test_blocks_of_the_output_are_cached_when_the_request_ends() -> None:
    first = request("a", 32, 33, 1, 2, 3, 4)
    run = drive(Engine(PLAIN), [(0, first), (5000 * MS, request("b", 70, 1, 1, 2, 3, 4))])
    assert run.cached["b"] == 64


def test_when_blocks_run_out_the_last_admitted_is_preempted_and_still_ends() -> None:
    engine = Engine(profile(kv_capacity_tokens=160))
    run = drive(engine, [(0, request("a", 60, 60)), (0, request("b", 60, 60))])
    assert engine.preemptions >= 1
    assert run.end_ps["a"] < run.end_ps["b"]
    assert run.finish["a"].recomputed_tokens == 0
    assert run.finish["b"].recomputed_tokens > 60
    assert run.finish["b"].prefilled_tokens == 60


def test_what_never_fits_is_refused() -> None:
    with pytest.raises(RequestTooLarge, match="needs KV for 90 \\+ 80 tokens"):
        Engine(profile(kv_capacity_tokens=160)).submit(request("r", 90, 80))


def test_lengths_and_ids_are_checked() -> None:
    engine = Engine(PLAIN)
    with pytest.raises(EngineFault, match="0 \\+ 1 tokens"):
        engine.submit(request("r", 0, 1))
    engine.submit(request("r", 1, 1))
    with pytest.raises(EngineFault, match="is here already"):
        engine.submit(request("r", 1, 1))


def test_steps_are_begun_and_finished_in_turn() -> None:
    engine = Engine(PLAIN)
    assert engine.begin_step() is None
    with pytest.raises(EngineFault, match="no step was begun"):
        engine.finish_step()
    engine.submit(request("r", 1, 5))
    engine.begin_step()
    with pytest.raises(EngineFault, match="was not finished"):
        engine.begin_step()
    with pytest.raises(EngineFault, match="2 steps cannot be finished"):
        engine.finish_step(2)


def test_aborting_gives_everything_back() -> None:
    engine = Engine(PLAIN)
    for name in ("decoding", "prefilling", "waiting"):
        engine.submit(request(name, 1500 if name == "prefilling" else 30, 50, 7))
        if name == "decoding":
            engine.begin_step()
            engine.finish_step()
    engine.begin_step()
    for name in ("waiting", "decoding", "prefilling"):
        engine.abort(name)
    result = engine.finish_step()
    assert result.finished == []
    assert not engine.busy
    assert engine.kv_use == 0
    engine.check_integrity()
    with pytest.raises(EngineFault, match="is not here"):
        engine.abort("waiting")


def test_details_name_every_token_and_every_block() -> None:
    engine = Engine(profile(kv_capacity_tokens=48), record_details=True)
    engine.submit(request("a", 33, 2, 1, 2))
    engine.begin_step()
    result = engine.finish_step()
    assert result.tokens == ["a"]
    assert result.kv_events == [StoredBlocks("a", 0, None, chain(1, 2))]
    engine.begin_step()
    assert engine.finish_step().tokens == ["a"]
    engine.submit(request("b", 47, 1, 1, 5))
    engine.begin_step()
    events = engine.finish_step().kv_events
    assert events == [RemovedBlocks(chain(2)), StoredBlocks("b", 1, chain(1), chain(5))]


def test_gauges_follow_the_requests() -> None:
    engine = Engine(profile(max_sequences=1))
    engine.submit(request("a", 32, 10, 1, 2))
    engine.submit(request("b", 50, 10, 1, 2, 3))
    assert (engine.running, engine.waiting, engine.uncached_waiting_tokens) == (0, 2, 82)
    engine.begin_step()
    engine.finish_step()
    assert (engine.running, engine.waiting, engine.uncached_waiting_tokens) == (1, 1, 18)
    assert engine.kv_use == 2 / (PLAIN.kv_capacity_tokens // 16)
    assert (engine.prefix_queries, engine.prefix_hits) == (32, 0)


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[int, EngineRequest]]:
    rng = Random(draw(st.integers(0, 2**32)))
    arrivals, now = [], 0
    for i in range(draw(st.integers(1, 40))):
        now += int(rng.expovariate(1 / (60 * MS)))
        prompt, output = rng.randint(1, 150), rng.randint(1, 60)
        depth, base = rng.randint(0, 9), rng.randint(1, 4)
        blocks = (prompt + (output if i % 2 else 0)) // 16
        owners = [base if j < depth else i + 100 for j in range(blocks)]
        ids = [(owner << 32) | j for j, owner in enumerate(owners)]
        arrivals.append((now, request(str(i), prompt, output, *ids)))
    return arrivals


def outcome(arrivals: list[tuple[int, EngineRequest]], limit: int, capacity: int) -> tuple[Run, int, int]:
    engine = Engine(profile(kv_capacity_tokens=capacity, max_batch_tokens=64))
    run = drive(engine, arrivals, limit)
    run.step_s.clear()
    return run, engine.preemptions, engine.prefix_hits


@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from([400, 600, 10_000]))
def test_runs_of_decode_steps_give_exactly_what_single_steps_give(
    arrivals: list[tuple[int, EngineRequest]], capacity: int
) -> None:
    assert outcome(arrivals, 1, capacity) == outcome(arrivals, NO_LIMIT, capacity)


@settings(max_examples=40, deadline=None)
@given(workloads(), st.sampled_from([400, 10_000]))
def test_tokens_are_conserved(arrivals: list[tuple[int, EngineRequest]], capacity: int) -> None:
    run, preemptions, _ = outcome(arrivals, NO_LIMIT, capacity)
    assert len(run.end_ps) == len(arrivals)
    for _, asked in arrivals:
        done = run.finish[asked.id]
        assert done.prefilled_tokens + run.cached[asked.id] == asked.prompt_tokens or preemptions
        assert done.recomputed_tokens == 0 or preemptions
        assert run.cached[asked.id] < asked.prompt_tokens
