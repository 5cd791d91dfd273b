"""A window's running total always equals the sum of what it still holds."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.telemetry.traffic import WINDOW_S, Traffic, TrafficWindow, quantiles
from router.core.histogram import merge

counts = st.dictionaries(st.integers(0, 90), st.integers(1, 50), max_size=6)
traffics = st.builds(
    Traffic,
    requests=st.integers(0, 100),
    errors=st.integers(0, 5),
    prompt_tokens=st.integers(0, 10_000),
    predicted_hit_tokens=st.integers(0, 10_000),
    score=counts,
    ttft_us=counts,
)
arrivals = st.lists(st.tuples(st.integers(0, 40), traffics), max_size=30)


def copied(traffic: Traffic) -> Traffic:
    copy = Traffic()
    copy.add(traffic)
    return copy


@given(arrivals, st.integers(0, 200))
def test_total_is_the_sum_of_the_last_minute(gaps_and_traffic: list[tuple[int, Traffic]], idle_s: int) -> None:
    window, held, second = TrafficWindow(), [], 0
    for gap_s, traffic in gaps_and_traffic:
        second += gap_s
        window.add(second, copied(traffic))
        held.append((second, traffic))
    second += idle_s
    window.advance(second)
    inside = [traffic for at, traffic in held if at > second - WINDOW_S]
    assert window.total.requests == sum(t.requests for t in inside)
    assert window.total.predicted_hit_tokens == sum(t.predicted_hit_tokens for t in inside)
    assert window.total.score == merge(t.score for t in inside)
    assert window.total.ttft_us == merge(t.ttft_us for t in inside)
    assert all(at > second - WINDOW_S for at, _ in window.cells())


@given(arrivals)
def test_an_idle_minute_empties_the_window(gaps_and_traffic: list[tuple[int, Traffic]]) -> None:
    window, second = TrafficWindow(), 0
    for gap_s, traffic in gaps_and_traffic:
        second += gap_s
        window.add(second, traffic)
    window.advance(second + WINDOW_S)
    assert window.total == Traffic()
    assert window.is_empty


def test_hit_ratio_prefers_what_engines_reported() -> None:
    predicted = Traffic(requests=2, prompt_tokens=1_000, predicted_hit_tokens=250)
    assert predicted.hit_ratio == 0.25
    predicted.add(Traffic(reported_hit_tokens=90, reported_prompt_tokens=100))
    assert predicted.hit_ratio == 0.9
    assert Traffic().hit_ratio is None


def test_quantiles_of_nothing_are_unknown_and_units_are_applied() -> None:
    assert quantiles({}, 0.5, 0.99) == (None, None)
    (median,) = quantiles({40: 10}, 0.5, unit=1e-3)
    assert median is not None
    assert 2**10 * 1e-3 <= median <= 2**10.25 * 1e-3
