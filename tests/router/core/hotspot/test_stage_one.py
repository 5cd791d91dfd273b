"""Stage 1: the inequality and its hysteresis."""

from hypothesis import assume, given
from hypothesis import strategies as st

from router.core.hotspot.stage_one import Watch, is_hot, next_watch

counts = st.integers(1, 10_000)
sizes = st.integers(1, 200)


@given(requests=counts, others=counts, holders=sizes, rest=sizes)
def test_it_is_the_inequality_of_the_method(requests: int, others: int, holders: int, rest: int) -> None:
    """``x / (1 - x) > |M| / (N - |M|)``, with every quotient multiplied out."""
    said = is_hot(requests, requests + others, holders, holders + rest)
    assert said == (requests * rest > holders * others)


@given(requests=counts, others=st.integers(0, 10_000), ready=sizes)
def test_all_or_none_holding_the_prefix_is_never_a_hotspot(requests: int, others: int, ready: int) -> None:
    assert not is_hot(requests, requests + others, ready, ready)
    assert not is_hot(requests, requests + others, 0, ready)


@given(requests=counts, others=counts, holders=sizes, rest=sizes)
def test_more_requests_never_make_it_less_hot(requests: int, others: int, holders: int, rest: int) -> None:
    assume(is_hot(requests, requests + others, holders, holders + rest))
    assert is_hot(requests + 1, requests + 1 + others, holders, holders + rest)


def test_a_class_is_watched_from_the_first_time_that_it_is_hot() -> None:
    assert next_watch(None, False, 5.0, 60.0) is None
    assert next_watch(None, True, 5.0, 60.0) == Watch(5.0)
    assert next_watch(Watch(5.0, calm_since_s=20.0), True, 30.0, 60.0) == Watch(5.0)


def test_it_is_released_when_it_was_not_hot_for_a_whole_window() -> None:
    watch = next_watch(Watch(5.0), False, 100.0, 60.0)
    assert watch == Watch(5.0, calm_since_s=100.0)
    assert next_watch(watch, False, 159.9, 60.0) == watch
    assert next_watch(watch, False, 160.0, 60.0) is None


@given(hots=st.lists(st.booleans(), min_size=1, max_size=60))
def test_it_is_watched_exactly_while_it_was_hot_within_a_window(hots: list[bool]) -> None:
    """Evaluated every 10 s: released at the end of the first whole window without a hot evaluation."""
    watch = None
    for place, hot in enumerate(hots):
        watch = next_watch(watch, hot, place * 10.0, 60.0)
        recent = hots[max(0, place - 6) : place + 1]
        assert (watch is not None) == any(recent)
