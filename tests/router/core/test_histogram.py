"""Histograms that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.histogram import bucket_of, lower_edge, merge, quantile, record

VALUES = st.floats(0, 1e15)


def counted(values: list[float]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in values:
        record(counts, value)
    return counts


@given(value=st.floats(1, 1e15))
def test_a_value_lies_between_the_edges_of_its_bucket(value: float) -> None:
    bucket = bucket_of(value)
    assert lower_edge(bucket) <= value * (1 + 1e-12)
    assert value <= lower_edge(bucket + 1) * (1 + 1e-12)


@pytest.mark.parametrize("value", [0, 0.3, 1])
def test_values_up_to_one_share_the_first_bucket(value: float) -> None:
    assert bucket_of(value) == 0


@given(one=VALUES, other=VALUES)
def test_a_larger_value_never_falls_into_an_earlier_bucket(one: float, other: float) -> None:
    assert (bucket_of(one) <= bucket_of(other)) or one > other


@given(one=st.lists(VALUES), other=st.lists(VALUES))
def test_merging_counts_as_counting_together(one: list[float], other: list[float]) -> None:
    parts = [counted(one), counted(other)]
    before = [dict(part) for part in parts]
    assert merge(parts) == counted(one + other)
    assert parts == before


@given(values=st.lists(st.floats(1, 1e12), min_size=1), q=st.floats(0, 1))
def test_a_quantile_is_true_to_one_bucket(values: list[float], q: float) -> None:
    exact = sorted(values)[max(0, min(len(values) - 1, -int(-q * len(values) // 1) - 1))]
    assert abs(bucket_of(exact) - bucket_of(quantile(counted(values), q))) <= 1


@given(values=st.lists(VALUES, min_size=1), q=st.floats(0, 1), p=st.floats(0, 1))
def test_quantiles_rise(values: list[float], q: float, p: float) -> None:
    counts = counted(values)
    low, high = sorted((q, p))
    assert quantile(counts, low) <= quantile(counts, high)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
