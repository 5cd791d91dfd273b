"""Batches of equal timestamps become an even stream, and nothing else changes."""

from hypothesis import given
from hypothesis import strategies as st

from router.replay.schedule import LAST_GAP_S, spread_batches


def test_a_batch_is_spread_up_to_the_next_one() -> None:
    assert spread_batches([0.0, 0.0, 0.0, 3.0, 9.0, 9.0]) == [0.0, 1.0, 2.0, 3.0, 9.0, 12.0]


def test_a_single_batch_is_spread_over_the_usual_gap() -> None:
    assert spread_batches([5.0, 5.0]) == [5.0, 5.0 + LAST_GAP_S / 2]
    assert spread_batches([]) == []


@given(st.lists(st.integers(0, 50).map(float), max_size=60).map(sorted))
def test_order_stays_and_everyone_stays_in_their_interval(arrivals: list[float]) -> None:
    spread = spread_batches(arrivals)
    assert spread == sorted(spread)
    later = {moment: next((other for other in arrivals if other > moment), None) for moment in arrivals}
    for before, after in zip(arrivals, spread, strict=True):
        end = later[before]
        assert before <= after
        assert end is None or after < end


@given(st.lists(st.floats(0, 1e4, allow_nan=False), unique=True, max_size=30).map(sorted))
def test_arrivals_that_differ_stay_as_they_are(arrivals: list[float]) -> None:
    assert spread_batches(arrivals) == arrivals
