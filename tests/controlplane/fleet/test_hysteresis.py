"""One failed probe ejects nobody, and one good one brings nobody back."""

from controlplane.fleet.hysteresis import Standing, Thresholds, judge
from controlplane.fleet.lifecycle import Event
from router.core.instance import InstanceState as S

LIMITS = Thresholds(failures_down=3, successes_up=2)


def test_the_third_failure_in_a_row_is_down() -> None:
    standing = Standing(S.READY, 0, 2, 100.0)
    events = []
    for _ in range(3):
        verdict = judge(standing, False, None, LIMITS)
        standing = Standing(S.READY, verdict.failures, verdict.successes, 100.0)
        events.append(verdict.event)
    assert events == [None, None, Event.DOWN]


def test_a_success_between_failures_begins_the_count_again() -> None:
    verdict = judge(Standing(S.READY, 2, 0, 100.0), True, 100.0, LIMITS)
    assert (verdict.failures, verdict.event) == (0, None)


def test_an_instance_that_joins_needs_one_success() -> None:
    assert judge(Standing(S.PROBING, 0, 0, None), True, 100.0, LIMITS).event is Event.UP


def test_an_unreachable_one_needs_several_and_keeps_its_cache_if_the_process_is_the_same() -> None:
    first = judge(Standing(S.UNREACHABLE, 5, 0, 100.0), True, 100.0, LIMITS)
    assert first.event is None
    assert judge(Standing(S.UNREACHABLE, 0, first.successes, 100.0), True, 100.0, LIMITS).event is Event.RETURNED
    assert judge(Standing(S.UNREACHABLE, 0, first.successes, 100.0), True, 200.0, LIMITS).event is Event.UP
    assert judge(Standing(S.UNREACHABLE, 0, first.successes, 100.0), True, None, LIMITS).event is Event.UP


def test_a_restart_is_seen_without_any_failed_probe() -> None:
    assert judge(Standing(S.READY, 0, 2, 100.0), True, 200.0, LIMITS).event is Event.RESTARTED


def test_failures_of_an_unreachable_one_are_no_news() -> None:
    assert judge(Standing(S.UNREACHABLE, 7, 0, 100.0), False, None, LIMITS).event is None
