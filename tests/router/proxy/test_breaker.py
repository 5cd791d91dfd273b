"""Breakers and budgets, as tables of events."""

import pytest

from router.proxy.breaker import Breaker, BreakerRule, BreakerState
from router.proxy.retry_budget import RetryBudget

RULE = BreakerRule(failures=3, first_backoff_s=1.0, most_backoff_s=4.0)


class Watched:
    """A breaker, and what it told its owner."""

    def __init__(self) -> None:
        self.ejected = False
        self.breaker = Breaker(RULE, self._told)

    def _told(self, ejected: bool) -> None:
        self.ejected = ejected

    def fail(self, now_s: float, times: int = 1, attempt: object = None, *, certain: bool = False) -> None:
        for _ in range(times):
            self.breaker.failed(attempt, now_s, certain=certain)


def opened(now_s: float = 0.0) -> Watched:
    watched = Watched()
    watched.fail(now_s, 3)
    assert watched.breaker.state is BreakerState.OPEN
    return watched


def test_it_takes_several_failures_in_a_row() -> None:
    watched = Watched()
    watched.fail(0, 2)
    watched.breaker.succeeded()
    watched.fail(0, 2)
    assert (watched.breaker.state, watched.ejected) == (BreakerState.CLOSED, False)
    watched.fail(0)
    assert (watched.breaker.state, watched.ejected) == (BreakerState.OPEN, True)


def test_a_refused_connection_needs_no_second_witness() -> None:
    watched = Watched()
    watched.fail(0, certain=True)
    assert watched.ejected


def test_after_the_back_off_one_request_is_the_trial() -> None:
    watched = opened()
    watched.breaker.tick(0.9)
    assert watched.ejected
    watched.breaker.tick(1.0)
    assert (watched.breaker.state, watched.ejected) == (BreakerState.HALF_OPEN, False)
    watched.breaker.chosen("trial")
    assert (watched.breaker.state, watched.ejected) == (BreakerState.TRIAL, True)


def test_a_good_trial_brings_the_instance_back() -> None:
    watched = opened()
    watched.breaker.tick(1.0)
    watched.breaker.chosen("trial")
    watched.breaker.succeeded()
    assert (watched.breaker.state, watched.ejected, watched.breaker.failures) == (BreakerState.CLOSED, False, 0)


def test_bad_trials_double_the_back_off_up_to_its_limit() -> None:
    watched = opened()
    now_s, waits = 0.0, []
    for _ in range(5):
        before_s = now_s
        while watched.breaker.state is BreakerState.OPEN:
            now_s += 0.5
            watched.breaker.tick(now_s)
        waits.append(now_s - before_s)
        watched.breaker.chosen("trial")
        watched.fail(now_s, attempt="trial")
    assert waits == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_a_trial_without_a_verdict_leaves_the_next_request_to_try() -> None:
    watched = opened()
    watched.breaker.tick(1.0)
    watched.breaker.chosen("trial")
    watched.breaker.ended("someone else")
    assert watched.breaker.state is BreakerState.TRIAL
    watched.breaker.ended("trial")
    assert (watched.breaker.state, watched.ejected) == (BreakerState.HALF_OPEN, False)


def test_a_failure_of_an_older_request_does_not_end_a_trial() -> None:
    watched = opened()
    watched.breaker.tick(1.0)
    watched.breaker.chosen("trial")
    watched.fail(1.0, attempt="older")
    assert watched.breaker.state is BreakerState.TRIAL


def test_no_mark_is_for_ever() -> None:
    watched = opened()
    watched.breaker.tick(1e9)
    assert not watched.ejected


def test_another_engine_behind_the_name_begins_anew() -> None:
    watched = opened()
    watched.breaker.reset()
    assert (watched.breaker.state, watched.ejected, watched.breaker.failures) == (BreakerState.CLOSED, False, 0)


def test_a_budget_allows_a_share_of_the_traffic_beyond_its_reserve() -> None:
    budget = RetryBudget(share=0.1, reserve=2)
    spent = 0
    for _ in range(1000):
        budget.earn()
        spent += budget.spend()
    assert spent == pytest.approx(102, abs=1)


def test_the_reserve_fills_up_again_over_time() -> None:
    budget = RetryBudget(share=0.0, reserve=4, refill_per_s=1.0)
    while budget.spend():
        pass
    for now_s, left in ((10.0, 0), (12.0, 2), (100.0, 4)):
        budget.tick(now_s)
        assert budget.retries_left == left


def test_a_budget_does_not_grow_without_limit() -> None:
    budget = RetryBudget(share=1.0, reserve=1, most=5)
    for _ in range(100):
        budget.earn()
    assert budget.retries_left == 5
