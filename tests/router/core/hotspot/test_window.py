"""The sliding window: what is in it, and what has left it."""

from hypothesis import given
from hypothesis import strategies as st

from router.core.hotspot.window import BUCKETS, CAPACITY, ClassWindow

KEY = b"k" * 8


def arrive(window: ClassWindow, now_s: float, key: bytes | None = KEY) -> None:
    if now_s >= window.ends_s:
        window.turn(now_s)
    window.now_arrivals += 1
    if key is not None:
        count = window.counts.get(key) or window.open(key, "m")
        count.requests += 1


@given(gaps=st.lists(st.floats(0, 90), min_size=1, max_size=60))
def test_it_holds_the_last_window_and_at_most_one_bucket_more(gaps: list[float]) -> None:
    window = ClassWindow(60.0)
    times = []
    for gap in gaps:
        times.append((times[-1] if times else 0.0) + gap)
        arrive(window, times[-1])
        now_s = times[-1]
        at_least = sum(t > now_s - 60 for t in times)
        at_most = sum(t > now_s - 70 - 1e-6 for t in times)
        assert at_least <= window.arrivals <= at_most
        assert window.requests(KEY) == window.arrivals


def test_arrivals_without_a_class_count_for_the_share_of_others() -> None:
    window = ClassWindow(60.0)
    for _ in range(3):
        arrive(window, 1.0, None)
    arrive(window, 1.0)
    assert (window.arrivals, window.requests(KEY)) == (4, 1)


def test_after_a_long_silence_it_is_empty() -> None:
    window = ClassWindow(60.0)
    arrive(window, 0.0)
    window.turn(1e7)
    assert (window.arrivals, window.requests(KEY), window.count(KEY), window.classes()) == (0, 0, None, {})
    assert 1e7 < window.ends_s <= 1e7 + 10


def test_buckets_of_a_class_add_up() -> None:
    window = ClassWindow(60.0)
    for now_s in (0.0, 12.0, 25.0):
        arrive(window, now_s)
    count = window.count(KEY)
    assert count is not None
    assert (count.requests, count.error, window.classes()[KEY].requests) == (3, 0, 3)


def test_memory_is_bounded_whatever_arrives() -> None:
    window = ClassWindow(60.0)
    for number in range(20_000):
        arrive(window, number / 100, number.to_bytes(8, "little"))
    assert len(window.classes()) <= (BUCKETS + 1) * CAPACITY
