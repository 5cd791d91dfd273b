"""The cluster simulator: conserved, reproducible, and right where theory knows the answer."""

from random import Random

import msgspec
import pytest

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.core.scorers import SCORERS
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.errors import ScenarioError
from router.sim.outcomes import Outcomes, Status
from router.sim.scenario import InstanceSpec, Observation, Restart, Scenario, fleet_of, uniform_fleet
from router.sim.traces.generator import generate
from router.sim.traces.record import TraceRequest
from tests.router.sim.driving import chain, scenario_of, trace_of

CHAT = generate("chatbot", duration_s=60, requests_per_s=20)


def chat_scenario(**changes: object) -> Scenario:
    scenario = Scenario(trace=CHAT, fleet=uniform_fleet(A100_80G, 4), warmup=0.0)
    return msgspec.structs.replace(scenario, **changes)


def simulate(scenario: Scenario, scorer: str = "multiplicative") -> Outcomes:
    return Cluster(scenario, Policy(scorer=scorer)).run()


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_policy_conserves_requests_and_tokens(scorer: str) -> None:
    cluster = Cluster(chat_scenario(), Policy(scorer=scorer))
    outcomes = cluster.run()
    assert set(outcomes.status) == {Status.DONE}
    for i, asked in enumerate(CHAT.requests):
        assert outcomes.prefilled_tokens[i] + outcomes.cached_tokens[i] == asked.prompt_tokens
        assert outcomes.arrival_ps[i] < outcomes.first_ps[i] <= outcomes.end_ps[i]
    for view in cluster.fleet.views:
        assert (view.bs, view.waiting, view.queued_prefill_tokens, view.active_kv_tokens) == (0, 0, 0, 0)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not() -> None:
    scenario = chat_scenario()
    assert simulate(scenario, "random").to_bytes() == simulate(scenario, "random").to_bytes()
    other = msgspec.structs.replace(scenario, seed=1)
    assert simulate(scenario, "random").to_bytes() != simulate(other, "random").to_bytes()


def test_under_pressure_of_memory_everything_still_ends() -> None:
    small = msgspec.structs.replace(A100_80G, kv_capacity_tokens=40_000)
    outcomes = simulate(chat_scenario(fleet=uniform_fleet(small, 2)))
    assert outcomes.preemptions > 0
    assert set(outcomes.status) == {Status.DONE}
    assert sum(outcomes.recomputed_tokens) > 0
    for i, asked in enumerate(CHAT.requests):
        assert outcomes.prefilled_tokens[i] + outcomes.cached_tokens[i] == asked.prompt_tokens


def test_one_request_takes_what_the_cost_model_says() -> None:
    outcomes = simulate(scenario_of([TraceRequest(arrival_s=1.0, prompt_tokens=1000, output_tokens=3)]))
    ttft_s = (outcomes.first_ps[0] - outcomes.arrival_ps[0]) / PS_PER_S
    decode_s = (outcomes.end_ps[0] - outcomes.first_ps[0]) / PS_PER_S
    assert ttft_s == pytest.approx(0.008 + 1000 / 20_000)
    assert decode_s == pytest.approx(2 * (0.008 + 0.00012) + (1001 + 1002) * 2e-8)


def test_one_server_matches_the_theory_of_the_mm1_queue() -> None:
    """Prompts of exponential length, one at a time, no output to speak of: sojourn time is 1 / (mu - lambda)."""
    rng = Random(5)
    mean_tokens, rate_per_s, now_s = 2000, 5.0, 0.0
    requests = []
    for _ in range(40_000):
        now_s += rng.expovariate(rate_per_s)
        tokens = max(1, round(rng.expovariate(1 / mean_tokens)))
        requests.append(TraceRequest(arrival_s=now_s, prompt_tokens=tokens, output_tokens=1))
    server = HardwareProfile(
        name="mm1",
        t0_s=0.0,
        prefill_s_per_token=0.1 / mean_tokens,
        decode_s_per_sequence=0.0,
        decode_s_per_kv_token=0.0,
        kv_capacity_tokens=10**9,
        max_batch_tokens=10**9,
        max_sequences=1,
    )
    scenario = Scenario(trace=trace_of(requests), fleet=uniform_fleet(server, 1))
    outcomes = simulate(scenario)
    sojourn_s = [(end - start) / PS_PER_S for start, end in zip(outcomes.arrival_ps, outcomes.end_ps, strict=True)]
    assert sum(sojourn_s) / len(sojourn_s) == pytest.approx(1 / (10 - rate_per_s), rel=0.03)


def test_a_session_waits_for_its_answer_and_thinks() -> None:
    turns = [
        TraceRequest(arrival_s=0.0, prompt_tokens=160, output_tokens=10, session="s"),
        TraceRequest(arrival_s=9.0, prompt_tokens=320, output_tokens=10, session="s", think_s=2.0),
    ]
    outcomes = simulate(scenario_of(turns))
    assert outcomes.arrival_ps[1] == outcomes.end_ps[0] + 2 * PS_PER_S


def test_prompts_are_routed_to_their_prefix_at_once() -> None:
    """The second request comes before the first has ended, and no metrics have been reported yet."""
    blocks = chain(*range(1, 101))
    twice = [TraceRequest(arrival_s=t, prompt_tokens=1600, output_tokens=20, blocks=blocks) for t in (0.0, 0.09)]
    outcomes = simulate(scenario_of(twice), "least_pending_prefill")
    assert outcomes.instance[0] == outcomes.instance[1]
    assert outcomes.predicted_tokens[1] == outcomes.cached_tokens[1] == 1584


def test_a_prompt_computed_twice_is_counted_as_cached_elsewhere() -> None:
    blocks = chain(*range(1, 11))
    twice = [TraceRequest(arrival_s=t, prompt_tokens=160, output_tokens=2, blocks=blocks) for t in (0.0, 1.0)]
    outcomes = simulate(scenario_of(twice), "round_robin")
    assert outcomes.instance[0] != outcomes.instance[1]
    assert list(outcomes.elsewhere_tokens) == [0, 144]


def test_a_request_too_large_for_every_cache_is_refused_and_its_session_goes_on() -> None:
    turns = [
        TraceRequest(arrival_s=0.0, prompt_tokens=600_000, output_tokens=10, session="s"),
        TraceRequest(arrival_s=1.0, prompt_tokens=100, output_tokens=10, session="s", think_s=1.0),
    ]
    assert list(simulate(scenario_of(turns)).status) == [Status.REFUSED, Status.DONE]


def test_an_instance_that_joins_takes_traffic_from_then_on() -> None:
    fleet = (
        InstanceSpec(name="first", profile=A100_80G),
        InstanceSpec(name="second", profile=A100_80G, join_s=30.0),
    )
    outcomes = simulate(chat_scenario(fleet=fleet), "least_request")
    late = [arrival for arrival, place in zip(outcomes.arrival_ps, outcomes.instance, strict=True) if place == 1]
    assert late
    assert min(late) >= 30 * PS_PER_S


def test_a_restart_retries_what_had_not_begun_and_fails_the_rest() -> None:
    fleet = uniform_fleet(A100_80G, 2)
    outcomes = simulate(chat_scenario(fleet=fleet, restarts=(Restart(instance=fleet[0].name, at_s=20.0),)))
    assert outcomes.status.count(Status.FAILED) > 0
    assert outcomes.retried >= 0
    assert Status.PENDING not in outcomes.status
    after = [
        predicted - cached
        for arrival, predicted, cached in zip(
            outcomes.arrival_ps, outcomes.predicted_tokens, outcomes.cached_tokens, strict=True
        )
        if arrival > 22 * PS_PER_S
    ]
    assert sum(after) < 0.02 * sum(outcomes.prompt_tokens)


def test_kv_events_make_residency_exact_the_sooner_the_better() -> None:
    tight = msgspec.structs.replace(A100_80G, kv_capacity_tokens=60_000)

    def error(kv_event_delay_s: float | None) -> float:
        observation = Observation(kv_event_delay_s=kv_event_delay_s)
        outcomes = simulate(chat_scenario(fleet=uniform_fleet(tight, 8), observation=observation))
        pairs = zip(outcomes.predicted_tokens, outcomes.cached_tokens, strict=True)
        return sum(abs(predicted - cached) for predicted, cached in pairs) / sum(outcomes.cached_tokens)

    at_once, late, never = error(0.0), error(1.0), error(None)
    assert at_once < late < never
    assert at_once < 0.01 < never


def test_metrics_are_seen_late() -> None:
    """With one request in flight and no bookings to tell, only the report can show the KV use."""
    requests = [TraceRequest(arrival_s=t, prompt_tokens=100_000, output_tokens=200) for t in (0.0, 7.0)]

    def kv_use_at_the_end(delay_s: float) -> float | None:
        scenario = scenario_of(requests, 1, observation=Observation(report_period_s=1.0, report_delay_s=delay_s))
        cluster = Cluster(scenario, Policy())
        cluster.run()
        return cluster.fleet.views[0].kv_use

    assert kv_use_at_the_end(0.5) == pytest.approx(0.2, abs=0.01)
    assert kv_use_at_the_end(60.0) is None


def test_scenarios_that_cannot_be_run_are_refused() -> None:
    good = chat_scenario()
    for changes, reason in (
        ({"fleet": ()}, "no instance"),
        ({"rate_scale": 0.0}, "rate scale"),
        ({"warmup": 1.0}, "warm-up"),
        ({"trace": trace_of([])}, "no requests"),
        ({"restarts": (Restart(instance="nobody", at_s=1.0),)}, "nobody"),
        ({"fleet": (*good.fleet, good.fleet[0])}, "same name"),
        ({"observation": Observation(report_period_s=0.0)}, "period"),
    ):
        with pytest.raises(ScenarioError, match=reason):
            Cluster(msgspec.structs.replace(good, **changes), Policy())


def test_fleets_are_written_as_profile_and_count() -> None:
    assert [spec.profile.name for spec in fleet_of("a100-80g:2,h100", 9)] == ["a100-80g", "a100-80g", "h100"]
    assert len(fleet_of("h200", 5)) == 5
    assert len({spec.name for spec in fleet_of("l40s:3,h100:3", 0)}) == 6
    for text, reason in (("h1000", "no hardware profile"), ("h100:x", "not a number"), ("h100:0", "serve nothing")):
        with pytest.raises(ScenarioError, match=reason):
            fleet_of(text, 4)
