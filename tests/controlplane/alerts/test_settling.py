"""From findings to certainty."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.alerts.settling import LONGEST_QUIET, Patience, Tally, Verdict, count, judge, quiet_needed

PATIENCE = Patience(raise_after=3, resolve_after=2)


def verdicts(pattern: str, patience: Patience = PATIENCE, recurrences: int = 0) -> list[bool]:
    """Evaluate "x" (seen) and "." (not seen) in a row; return whether an alert was open after each."""
    tally, is_open, opened = Tally(), False, []
    for sign in pattern:
        tally = count(tally, sign == "x")
        verdict = judge(tally, patience, is_open=is_open, recurrences=recurrences)
        is_open = verdict is Verdict.STANDS or (is_open and verdict is not Verdict.OVER)
        opened.append(is_open)
    return opened


def test_it_takes_several_findings_in_a_row_to_raise() -> None:
    assert verdicts("xx.xx.xxx") == [False] * 8 + [True]


def test_it_takes_several_quiet_evaluations_in_a_row_to_resolve() -> None:
    assert verdicts("xxx.x.x..x") == [False, False, True, True, True, True, True, True, False, False]


def test_a_condition_that_flaps_faster_than_both_is_one_alert() -> None:
    assert verdicts("xxx" + ".x" * 20)[2:] == [True] * 41


def test_each_recurrence_makes_resolving_wait_twice_as_long() -> None:
    assert [quiet_needed(PATIENCE, n) for n in range(5)] == [2, 4, 8, 16, 32]
    assert quiet_needed(PATIENCE, 10_000) == LONGEST_QUIET


@given(st.text("x.", max_size=60), st.integers(1, 5), st.integers(1, 5))
def test_an_alert_is_never_raised_by_less_nor_resolved_by_less(
    pattern: str, raise_after: int, resolve_after: int
) -> None:
    opened = verdicts(pattern, Patience(raise_after, resolve_after))
    for at, (before, after) in enumerate(zip([False, *opened], opened, strict=False)):
        if after and not before:
            assert pattern[at + 1 - raise_after : at + 1] == "x" * raise_after
        if before and not after:
            assert pattern[at + 1 - resolve_after : at + 1] == "." * resolve_after
