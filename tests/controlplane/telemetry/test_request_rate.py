"""Requests per second stay right when deliveries are late or come from several workers."""

import pytest

from controlplane.telemetry.request_rate import RATE_SPAN_S, RequestRate


def test_steady_deliveries_give_their_rate() -> None:
    rate = RequestRate()
    for tick in range(1, 81):
        rate.add(tick * 0.25, 0.25, 10)
    assert rate.per_second(20.0) == pytest.approx(40.0)


def test_a_late_delivery_is_spread_over_the_time_it_covers() -> None:
    rate = RequestRate()
    rate.add(100.0, 50.0, 2_000)
    assert rate.per_second(100.0) == pytest.approx(40.0)


def test_two_workers_add_up() -> None:
    rate = RequestRate()
    for tick in range(1, 81):
        rate.add(tick * 0.25, 0.25, 5)
        rate.add(tick * 0.25, 0.25, 5)
    assert rate.per_second(20.0) == pytest.approx(40.0)


def test_the_first_seconds_are_not_diluted_by_time_nobody_watched() -> None:
    rate = RequestRate()
    rate.add(5.0, 0.25, 10)
    rate.add(5.25, 0.25, 10)
    assert rate.per_second(5.25) == pytest.approx(40.0)


def test_a_rate_that_nobody_reports_is_unknown() -> None:
    rate = RequestRate()
    assert rate.per_second(0.0) is None
    rate.add(1.0, 0.25, 10)
    assert rate.per_second(1.0 + RATE_SPAN_S) is None
