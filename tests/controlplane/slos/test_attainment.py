"""Counting against targets, attainment and burn rates: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.slos.attainment import Sums, target_attainment, window_attainment
from controlplane.slos.counting import Targets, at_most, count
from controlplane.telemetry.rollup import WorkerRollup, WorkloadRollup
from router.core.histogram import Counts, lower_edge, quantile, record


def rollup(latencies_s: list[float], errors: int = 0) -> WorkerRollup:
    ttft: Counts = {}
    for latency_s in latencies_s:
        record(ttft, latency_s * 1e6)
    row = WorkloadRollup(
        name="chat", policy="default@1", requests=len(latencies_s) + errors, errors=errors, ttft_us=ttft, tpot_us=ttft
    )
    return WorkerRollup(worker="router-0", bucket=0, workloads={"chat": row})


def test_values_far_from_the_target_are_counted_exactly() -> None:
    found = count("chat", [rollup([0.1] * 90 + [30.0] * 10), rollup([0.1] * 10)], Targets(2.0, None))
    assert (found.requests, found.ttft_counted, found.ttft_good) == (110, 110, 100)
    assert (found.tpot_counted, found.tpot_good) == (0, 0)


def test_failures_are_bad() -> None:
    found = count("chat", [rollup([0.1] * 90, errors=10)], Targets(2.0, 1.0))
    assert (found.ttft_counted, found.ttft_good) == (100, 90)
    assert (found.tpot_counted, found.tpot_good) == (100, 90)


def test_another_workload_counts_nothing() -> None:
    assert count("other", [rollup([0.1])], Targets(2.0, None)).requests == 0


@given(st.lists(st.floats(1, 1e8), min_size=1, max_size=50), st.floats(1, 1e8))
def test_a_share_is_between_the_buckets_below_and_up_to_the_target(values: list[float], target: float) -> None:
    counts: Counts = {}
    for value in values:
        record(counts, value)
    found = at_most(counts, target)
    assert (
        sum(v <= target / 2**0.25 for v in values) - 1e-6 <= found <= sum(v < target * 2**0.25 for v in values) + 1e-6
    )


@given(st.dictionaries(st.integers(1, 100), st.integers(1, 1000), min_size=1), st.floats(0.01, 0.99))
def test_it_is_the_inverse_of_a_quantile(counts: Counts, q: float) -> None:
    value = quantile(counts, q)
    assert value is not None
    assert at_most(counts, value) == pytest.approx(q * sum(counts.values()), rel=1e-6, abs=1e-6)


def test_edges() -> None:
    assert at_most({8: 5}, lower_edge(8)) == pytest.approx(0, abs=1e-6)
    assert at_most({8: 5}, lower_edge(9)) == pytest.approx(5)
    assert at_most({}, 100) == 0


@pytest.mark.parametrize(
    ("good", "counted", "percentile", "attainment", "burn", "met"),
    [
        (100, 100, 95, 1.0, 0.0, True),
        (95, 100, 95, 0.95, 1.0, True),
        (90, 100, 95, 0.9, 2.0, False),
        (0, 100, 99, 0.0, 100.0, False),
    ],
)
def test_burn_rate_is_the_share_of_misses_over_the_budget(
    good: float, counted: int, percentile: float, attainment: float, burn: float, met: bool
) -> None:
    found = target_attainment(good, counted, percentile)
    assert (found.attainment, found.burn_rate) == (pytest.approx(attainment), pytest.approx(burn))
    assert found.met is met


def test_nothing_counted_is_not_a_failure() -> None:
    assert target_attainment(0, 0, 95).met is None


def test_goodput_is_a_lower_bound_that_counts_failures_once() -> None:
    sums = Sums(minutes=1, requests=120, errors=10, ttft_counted=120, ttft_good=100, tpot_counted=120, tpot_good=105)
    assert window_attainment("x", sums, 95, 95).goodput_per_s == pytest.approx((120 - 20 - 15 + 10) / 60)
    assert window_attainment("x", sums, 95, None).goodput_per_s == pytest.approx(100 / 60)
    assert window_attainment("x", sums, 95, None).tpot is None
