"""Predictions that keep being wrong are noticed, and forgiven when they are right again."""

import pytest

from router.kvevents.self_check import MIN_SAMPLES, SelfCheck, Trust

BLOCK = 16


def answers(check: SelfCheck, count: int, error_blocks: int, instance: str = "a", prompt: int = 1600) -> Trust:
    trust = Trust.UNKNOWN
    for _ in range(count):
        trust = check.record(
            instance, "m", predicted=800 + error_blocks * BLOCK, reported=800, prompt=prompt, block=BLOCK
        )
    return trust


def test_nothing_is_concluded_from_a_few_answers() -> None:
    check = SelfCheck()
    assert answers(check, MIN_SAMPLES - 1, 50) is Trust.UNKNOWN
    assert answers(check, 1, 50) is Trust.BAD


def test_right_predictions_are_believed_and_one_block_is_no_error() -> None:
    assert answers(SelfCheck(), MIN_SAMPLES, 0) is Trust.GOOD
    assert answers(SelfCheck(), MIN_SAMPLES, 1) is Trust.GOOD
    assert answers(SelfCheck(), MIN_SAMPLES, -1) is Trust.GOOD


def test_some_evictions_on_the_way_change_nothing() -> None:
    check = SelfCheck()
    answers(check, 50, 0)
    assert answers(check, 20, 30) is Trust.GOOD


@pytest.mark.parametrize("error_blocks", [40, -40])
def test_a_persistent_mismatch_is_noticed_whichever_its_sign(error_blocks: int) -> None:
    check = SelfCheck()
    answers(check, 64, 0)
    assert answers(check, 40, error_blocks) is Trust.BAD


def test_trust_comes_back_later_than_it_went() -> None:
    check = SelfCheck()
    answers(check, 64, 40)
    assert answers(check, 40, 0) is Trust.BAD
    assert answers(check, 15, 0) is Trust.GOOD


def test_prompts_without_a_whole_block_say_nothing() -> None:
    check = SelfCheck()
    assert answers(check, 100, 0, prompt=BLOCK) is Trust.UNKNOWN
    assert check.reports() == []


def test_a_report_says_how_wrong() -> None:
    check = SelfCheck()
    answers(check, 60, 0)
    answers(check, 4, 10)
    (report,) = check.reports()
    assert (report.samples, report.median_error_blocks, report.p95_error_blocks) == (64, 0, 10)
    assert report.wrong_share == pytest.approx(4 / 64)


def test_instances_are_judged_apart_and_forgotten_together_with_their_past() -> None:
    check = SelfCheck()
    answers(check, 64, 40, "a")
    answers(check, 64, 0, "b")
    assert (check.trust("a", "m"), check.trust("b", "m")) == (Trust.BAD, Trust.GOOD)
    check.forget("a")
    assert (check.trust("a", "m"), check.trust("b", "m")) == (Trust.UNKNOWN, Trust.GOOD)


def test_a_window_that_could_never_conclude_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        SelfCheck(window=MIN_SAMPLES - 1)
