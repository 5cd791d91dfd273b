"""The books of a router give back the rates of a simulated engine, and only what can be told apart is measured."""

from itertools import count
from random import Random

import pytest
from msgspec.structs import replace

from router.config import InstanceConfig
from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G, HARDWARE_PROFILES
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.request import Request
from router.sim.cost import to_ps, to_s
from router.sim.engine import Engine
from router.sim.step import EngineRequest
from router.state.booking import Booking
from router.state.fleet import Fleet
from router.state.pace.cost_row import RowKind
from router.state.pace.pace_meter import ENOUGH_ROWS, PaceMeter, RequestPace, profile_name
from router.state.report import EngineReport

BATCHES = (1, 8, 32)


class Plant:
    """One simulated engine in virtual time, and the books of a router in front of it."""

    def __init__(self, profile: HardwareProfile, configured: HardwareProfile | None = None) -> None:
        self.fleet = Fleet(PrefixIndex(max_blocks=1000))
        config = InstanceConfig(id="id-a", name="gpu-a", url="http://127.0.0.1:1", hardware=configured)
        self.fleet.apply([config], now_s=0.0)
        self.instance = self.fleet.by_id("id-a")
        self.meter = PaceMeter(self.instance)
        self.engine = Engine(profile)
        self.open: dict[str, tuple[Booking, RequestPace, EngineRequest]] = {}
        self._rng = Random(1)

    def place(self, request: EngineRequest, now_s: float) -> None:
        asked = Request(id=request.id, model="m", prompt_tokens=request.prompt_tokens)
        decision = self.fleet.decide(asked, b"", Policy(), self._rng, now_s)
        pace = self.meter.placed(now_s)
        self.open[request.id] = self.fleet.book(decision, b"", now_s), pace, request
        self.engine.submit(request)

    def first(self, request_id: str, now_s: float) -> None:
        booking, pace, _ = self.open[request_id]
        booking.first_byte(now_s)
        pace.first_token(now_s, booking.new_tokens)

    def end(self, request_id: str, now_s: float) -> None:
        booking, pace, request = self.open.pop(request_id)
        pace.learn(now_s, request.prompt_tokens, request.output_tokens)
        booking.end()
        pace.ended(now_s)

    def run(self, arrivals: list[tuple[float, EngineRequest]]) -> None:
        """Serve requests that arrive at these times, to the end."""
        arrivals.sort(key=lambda arrival: arrival[0])
        now_ps = 0
        while arrivals or self.engine.busy:
            while arrivals and to_ps(arrivals[0][0]) <= now_ps:
                at_s, request = arrivals.pop(0)
                self.place(request, at_s)
            step = self.engine.begin_step(1)
            if step is None:
                now_ps = to_ps(arrivals[0][0])
                continue
            end_ps = now_ps + step.duration_ps
            while arrivals and to_ps(arrivals[0][0]) < end_ps:
                at_s, request = arrivals.pop(0)
                self.place(request, at_s)
            result = self.engine.finish_step(1)
            now_ps = end_ps
            for first in result.first_tokens:
                self.first(first.request_id, to_s(now_ps))
            for finish in result.finished:
                self.end(finish.request_id, to_s(now_ps))


def arrivals(seed: int, per_second: float, seconds: float) -> list[tuple[float, EngineRequest]]:
    """Return a Poisson stream of requests of varied length, with calm and busy stretches."""
    random, now_s, numbers, made = Random(seed), 0.0, count(), []
    while now_s < seconds:
        busy = 2.0 if int(now_s / 20) % 2 else 0.5
        now_s += random.expovariate(per_second * busy)
        prompt, output = int(random.lognormvariate(6.5, 1.0)) + 1, int(random.lognormvariate(4.5, 0.6)) + 2
        made.append((now_s, EngineRequest(f"r{next(numbers)}", prompt, output)))
    return made


@pytest.mark.parametrize(("true", "per_second"), [("a100-80g", 8.0), ("h20", 3.0), ("l40s", 6.0), ("h100", 12.0)])
@pytest.mark.parametrize("configured", ["a100-80g", "h100", None])
def test_the_rates_of_a_simulated_engine_are_recovered_within_a_tenth(
    true: str, per_second: float, configured: str | None
) -> None:
    profile = HARDWARE_PROFILES[true]
    plant = Plant(profile, None if configured is None else HARDWARE_PROFILES[configured])
    plant.run(arrivals(1, per_second, 120.0))
    plant.meter.refit(120.0)
    found = plant.meter.observed
    assert found is not None
    assert found.prefill_tokens_per_s == pytest.approx(profile.prefill_tokens_per_s, rel=0.1)
    assert found.decode_cost_s == pytest.approx(profile.decode_cost_s, rel=0.1)
    for batch in BATCHES:
        kv_tokens = batch * 1000
        step_s = profile.step_s(sequences=batch, kv_tokens=kv_tokens)
        assert found.step_s(sequences=batch, kv_tokens=kv_tokens) == pytest.approx(step_s, rel=0.1)


def test_little_is_no_profile_yet() -> None:
    plant = Plant(A100_80G)
    for number in range(ENOUGH_ROWS - 1):
        plant.run([(number * 10.0, EngineRequest(f"r{number}", 500, 40))])
    assert plant.meter.rows.count(RowKind.DECODE) < ENOUGH_ROWS
    plant.meter.refit(1.0)
    assert plant.meter.fit is not None
    assert plant.meter.observed is None


def test_a_first_token_that_waited_behind_another_prompt_is_not_counted() -> None:
    plant = Plant(A100_80G)
    plant.run(
        [(0.0, EngineRequest("a", 4000, 2)), (0.0, EngineRequest("b", 4000, 2)), (0.01, EngineRequest("c", 9, 2))]
    )
    assert plant.meter.rows.count(RowKind.FIRST) == 0
    plant.run([(10.0, EngineRequest("d", 4000, 2))])
    assert plant.meter.rows.count(RowKind.FIRST) == 1


def test_prompts_that_wait_at_the_engine_for_others_are_seen_as_queued() -> None:
    plant = Plant(A100_80G)
    plant.fleet.report(plant.instance, EngineReport(running=2, waiting=3), now_s=0.0, own_requests=0)
    plant.run([(0.0, EngineRequest("a", 4000, 2))])
    assert plant.meter.rows.count(RowKind.FIRST) == 0


def test_a_short_output_says_nothing_about_decode() -> None:
    plant = Plant(A100_80G)
    plant.run([(0.0, EngineRequest("a", 100, 4))])
    assert plant.meter.rows.count(RowKind.DECODE) == 0


def test_while_answers_come_whole_the_engine_says_how_large_the_batch_is() -> None:
    plant = Plant(A100_80G)
    plant.fleet.report(plant.instance, EngineReport(running=40, waiting=0), now_s=0.0, own_requests=40)
    whole = plant.meter.placed(0.0)
    whole.learn(0.0, 100, 50)
    booking = plant.fleet.book(
        plant.fleet.decide(Request(id="s", model="m", prompt_tokens=10), b"", Policy(), Random(1), 0.0), b"", 0.0
    )
    stream = plant.meter.placed(0.0)
    booking.first_byte(1.0)
    stream.first_token(1.0, 10)
    stream.learn(2.0, 10, 100)
    (row,) = [row for row in plant.meter.rows if row.kind is RowKind.DECODE]
    assert row.sequence_steps == pytest.approx(40 * 99)


def test_prefill_that_the_engine_measured_is_put_together() -> None:
    meter = Plant(A100_80G).meter
    for _ in range(10):
        meter.measured(1000, 0.1)
    assert meter.rows.count(RowKind.PREFILL) == 2
    assert all(row.prefill_tokens / row.took_s == pytest.approx(10_000) for row in meter.rows)


def test_the_kv_capacity_is_the_engines_and_the_limits_are_the_configured_ones() -> None:
    plant = Plant(A100_80G, replace(A100_80G, max_batch_tokens=2048))
    plant.fleet.report(plant.instance, EngineReport(kv_capacity_tokens=77_000), now_s=0.0, own_requests=0)
    plant.run([(0.0, EngineRequest("a", 3000, 40))])
    plant.meter.refit(1.0)
    assert plant.meter.fit is not None
    assert plant.meter.fit.profile.kv_capacity_tokens == 77_000
    assert plant.meter.fit.profile.max_batch_tokens == 2048


def test_another_engine_behind_the_name_begins_anew() -> None:
    plant = Plant(A100_80G)
    plant.run([(0.0, EngineRequest("a", 3000, 40))])
    plant.meter.refit(1.0)
    plant.meter.forget()
    assert plant.meter.fit is None
    assert len(plant.meter.rows) == 0


def test_a_profiles_name_can_stand_before_a_count() -> None:
    assert profile_name("10.0.0.7:8000") == "observed-10.0.0.7-8000"
