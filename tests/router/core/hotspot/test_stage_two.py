"""Stage 2: who won, how often in a row, and until when it counts."""

from hypothesis import given
from hypothesis import strategies as st

from router.core.candidate import Candidate
from router.core.hotspot.stage_two import Contest, StageTwo, after_contest, contest, still_mitigated
from router.core.terms import HotspotRule
from tests.router.core.fleets import fleet

RULE = HotspotRule()
WON, LOST = Contest(2, True), Contest(2, False)


def held(matched: list[int], scores: list[float]) -> Contest:
    candidates = [Candidate(view, 0, 1) for view in fleet(*[(0, 0)] * len(matched))]
    return contest(candidates, scores, matched, 32)


def test_holders_win_when_nobody_outside_scores_better() -> None:
    assert held([32, 40, 0, 31], [7.0, 3.0, 3.0, 9.0]) == Contest(2, True)
    assert held([32, 40, 0, 31], [7.0, 3.0, 2.0, 9.0]) == Contest(2, False)


def test_without_holders_or_without_others_nobody_wins() -> None:
    assert held([0, 31], [1.0, 2.0]) == Contest(0, False)
    assert held([32, 32], [1.0, 2.0]) == Contest(2, False)


def test_more_than_twice_the_holders_in_a_row_start_the_mitigation() -> None:
    state = StageTwo()
    for number in range(1, 5):
        state = after_contest(state, WON, RULE, 9.0)
        assert state == StageTwo(number)
    assert after_contest(state, WON, RULE, 9.0) == StageTwo(5, mitigated_since_s=9.0)


def test_one_that_is_lost_starts_the_count_again() -> None:
    assert after_contest(StageTwo(4), LOST, RULE, 9.0) == StageTwo()


@given(
    won=st.lists(st.booleans(), max_size=60), holders=st.integers(1, 5), factor=st.sampled_from([0.0, 1.0, 2.0, 2.5])
)
def test_it_mitigates_exactly_after_the_first_run_that_is_long_enough(
    won: list[bool], holders: int, factor: float
) -> None:
    rule, state, run = HotspotRule(factor=factor), StageTwo(), 0
    for each in won:
        state = after_contest(state, Contest(holders, each), rule, 1.0)
        run = run + 1 if each else 0
        assert (state.mitigated_since_s is not None) == (run > factor * holders)
        if state.mitigated_since_s is not None:
            break


def test_a_mitigation_ends_after_its_longest_duration() -> None:
    state = StageTwo(5, mitigated_since_s=100.0)
    assert still_mitigated(state, RULE, 699.9)
    assert not still_mitigated(state, RULE, 700.0)
    assert not still_mitigated(StageTwo(5), RULE, 100.0)
