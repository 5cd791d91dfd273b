"""The sketch: bounded, never too low, never too high by more than it says."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.hotspot.space_saving import SpaceSaving

keys = st.integers(0, 40)


def counted(stream: list[int], capacity: int) -> SpaceSaving:
    sketch = SpaceSaving(capacity)
    for number in stream:
        key = number.to_bytes(8, "little")
        count = sketch.counts.get(key) or sketch.open(b"p" * 8 + key, "m")
        count.requests += 1
    return sketch


@given(stream=st.lists(keys, max_size=300), capacity=st.integers(1, 12))
def test_counts_are_within_their_error_and_memory_is_bounded(stream: list[int], capacity: int) -> None:
    sketch = counted(stream, capacity)
    truth = Counter(number.to_bytes(8, "little") for number in stream)
    assert len(sketch.counts) == min(capacity, len(truth))
    assert sum(count.requests for count in sketch.counts.values()) == len(stream)
    for key, count in sketch.counts.items():
        assert count.requests - count.error <= truth[key] <= count.requests
        assert count.error <= len(stream) / capacity


@given(stream=st.lists(keys, max_size=300), capacity=st.integers(1, 12))
def test_every_class_above_its_share_is_found(stream: list[int], capacity: int) -> None:
    sketch = counted(stream, capacity)
    for number, times in Counter(stream).items():
        if times > len(stream) / capacity:
            assert number.to_bytes(8, "little") in sketch.counts


def test_a_sketch_has_room_for_something() -> None:
    with pytest.raises(ValueError, match="capacity is 0"):
        SpaceSaving(0)


def test_a_counter_is_kept_under_the_last_hash_of_its_prefix() -> None:
    sketch = SpaceSaving(1)
    count = sketch.open(b"aaaaaaaabbbbbbbb", "m")
    assert sketch.counts == {b"bbbbbbbb": count}
    assert (count.requests, count.prefix, count.model) == (0, b"aaaaaaaabbbbbbbb", "m")
