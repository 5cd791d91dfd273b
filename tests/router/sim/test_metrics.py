"""Figures are what they say they are."""

import numpy as np
import pytest

from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.sim.errors import ScenarioError
from router.sim.load import imbalance, load_over_time
from router.sim.metrics import Distribution, RunSummary, Slo, distribution, summarize
from router.sim.outcomes import Outcomes, Status
from router.sim.policy_text import parse_policies, parse_policy
from router.sim.sweep import find_saturation
from router.sim.traces.record import TraceRequest
from tests.router.sim.driving import scenario_of

SECOND = 10**12


def outcomes_of(*rows: tuple[int, float, float, float]) -> Outcomes:
    """Rows of (instance, arrival, first token, end) in seconds; 100 prompt and 11 output tokens each."""
    outcomes = Outcomes(len(rows))
    for i, (instance, arrival, first, end) in enumerate(rows):
        outcomes.status[i] = Status.DONE
        outcomes.instance[i] = instance
        outcomes.arrival_ps[i], outcomes.first_ps[i], outcomes.end_ps[i] = (
            round(moment * SECOND) for moment in (arrival, first, end)
        )
        outcomes.prompt_tokens[i], outcomes.output_tokens[i] = 100, 11
    return outcomes


def summary_of(outcomes: Outcomes, warmup: float = 0.0, slo: Slo | None = None) -> RunSummary:
    requests = [TraceRequest(arrival_s=0.0, prompt_tokens=100, output_tokens=11)] * len(outcomes)
    return summarize(scenario_of(requests, warmup=warmup), Policy(name="p"), outcomes, slo or Slo(), 0.5)


def test_times_are_those_of_the_requests() -> None:
    summary = summary_of(outcomes_of((0, 0.0, 1.0, 2.0), (1, 1.0, 4.0, 4.5)))
    assert summary.ttft_s.mean == pytest.approx(2.0)
    assert summary.tpot_s.mean == pytest.approx((0.1 + 0.05) / 2)
    assert summary.e2e_s.mean == pytest.approx((2.0 + 3.5) / 2)


def test_the_warm_up_is_left_out() -> None:
    outcomes = outcomes_of(*((0, float(i), i + (9.0 if i < 2 else 1.0), i + 10.0) for i in range(10)))
    outcomes.cached_tokens[9] = 80
    summary = summary_of(outcomes, warmup=0.2)
    assert summary.requests == 8
    assert summary.ttft_s == Distribution(1.0, 1.0, 1.0, 1.0)
    assert summary.hit_ratio == pytest.approx(80 / 800)


def test_goodput_counts_what_met_both_limits() -> None:
    outcomes = outcomes_of((0, 0.0, 1.0, 1.5), (0, 1.0, 4.0, 4.1), (0, 2.0, 2.5, 9.5))
    summary = summary_of(outcomes, slo=Slo(ttft_s=2.0, tpot_s=0.1))
    assert summary.slo_share == pytest.approx(1 / 3)
    assert summary.goodput_per_s == pytest.approx(1 / 2)


def test_load_is_the_time_that_requests_spend() -> None:
    outcomes = outcomes_of((0, 0.0, 1.0, 4.0), (1, 1.0, 2.0, 2.0), (1, 1.5, 2.0, 4.0))
    load = load_over_time(outcomes, 2, 4, 0.0, 4.0)
    assert load.tolist() == [[1, 1, 1, 1], [0, 1.5, 1, 1]]


def test_imbalance_weighs_by_load() -> None:
    assert imbalance(np.array([[4.0, 1.0], [0.0, 1.0]])) == pytest.approx((5 / 3, 2 / 3))
    assert imbalance(np.zeros((2, 3))) == (1.0, 0.0)
    assert distribution(np.zeros(0)) == Distribution(0.0, 0.0, 0.0, 0.0)


def test_policies_are_written_in_one_line() -> None:
    linear, product = parse_policies("linear:L=0.55, multiplicative:a=1:b=0.5:c=0.25:normalize=1")
    assert (linear.name, linear.params) == ("linear:L=0.55", {"L": 0.55})
    assert (product.a, product.b, product.c, product.normalize_hardware) == (1, 0.5, 0.25, True)
    for text, reason in (
        ("nobody", "no scorer named"),
        ("linear:M=1", "no parameter 'M'"),
        ("linear:L=high", "not a number"),
        ("linear:0.5", "is not"),
    ):
        with pytest.raises(InvalidPolicy, match=reason):
            parse_policy(text)
    with pytest.raises(InvalidPolicy, match="named twice"):
        parse_policies("vllm,vllm")
    with pytest.raises(InvalidPolicy, match="no policy"):
        parse_policies(" , ")


def fake_run(capacity: float, rate_scale: float) -> RunSummary:
    """A fleet of 10 requests/s at scale 1 that completes ``capacity`` of them at most."""
    summary = summary_of(outcomes_of((0, 0.0, 1.0, 2.0), (1, 1.0, 4.0, 4.5)))
    fields = {name: getattr(summary, name) for name in summary.__struct_fields__}
    fields |= {"requests_per_s": 10 * rate_scale, "completed_per_arrived": min(1.0, capacity / (10 * rate_scale))}
    return RunSummary(**fields)


@pytest.mark.parametrize("capacity", [0.3, 7.0, 10.0, 333.0])
def test_saturation_is_bisected(capacity: float) -> None:
    found = find_saturation(lambda rate_scale: fake_run(capacity, rate_scale))
    assert found.rate_scale <= capacity / 10 / 0.95 <= found.unsustained_rate_scale
    assert found.unsustained_rate_scale / found.rate_scale <= 1.03
    assert found.requests_per_s == pytest.approx(10 * found.rate_scale)


def test_a_fleet_without_saturation_is_reported() -> None:
    with pytest.raises(ScenarioError, match="use a longer trace"):
        find_saturation(lambda rate_scale: fake_run(1e9, rate_scale))
    with pytest.raises(ScenarioError, match="does not sustain any rate"):
        find_saturation(lambda rate_scale: fake_run(1e-9, rate_scale))
