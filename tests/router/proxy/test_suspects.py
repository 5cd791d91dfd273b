"""Which request is given up, for how long its body is refused, and when it is forgotten."""

import asyncio

import pytest

from router.proxy.inquest import Inquest
from router.proxy.suspects import KEPT_S, MOST_SUSPECTS, RULE, Death, Suspect, Suspects

PATH = b"/v1/chat/completions"
BODY = b'{"seed":1}'


class Request:
    """Counts how often it may go on."""

    def __init__(self) -> None:
        self.words = 0

    def on_word(self) -> None:
        self.words += 1


def death(engine: str, number: int = 1) -> Death:
    return Death(engine, f"id-{engine}", number)


def lose(suspects: Suspects, request: Request, engine: str | None, now_s: float = 0.0, number: int = 1) -> Suspect:
    """Lose a request and learn at once what became of the engine."""
    suspect, _ = suspects.lost(PATH, BODY, now_s)
    suspects.tell(suspect, request, None if engine is None else death(engine, number), now_s)
    return suspect


def given_up() -> tuple[Suspects, Suspect]:
    suspects, request = Suspects(7), Request()
    lose(suspects, request, "a")
    suspect = lose(suspects, request, "b")
    suspects.ended(suspect, request, answered=False)
    return suspects, suspect


def test_a_body_is_given_up_at_the_second_death_and_not_before() -> None:
    suspects, request = Suspects(7), Request()
    assert not lose(suspects, request, "a").is_given_up
    assert not lose(suspects, request, None).is_given_up
    assert lose(suspects, request, "b").is_given_up
    assert suspects.find(PATH, BODY) is not None
    assert suspects.find(PATH, b"{}") is None
    assert suspects.find(b"/v1/completions", BODY) is None


def test_many_requests_that_tell_of_one_death_count_once() -> None:
    suspects = Suspects(7)
    for _ in range(50):
        suspect = lose(suspects, Request(), "a")
    assert not suspect.is_given_up
    assert lose(suspects, Request(), "a", number=2).is_given_up  # it came back, and died again


def test_an_engine_that_lives_leaves_no_trace() -> None:
    suspects = Suspects(7)
    lose(suspects, Request(), None)
    assert len(suspects) == 0


def test_who_was_lost_before_waits_until_everything_is_known() -> None:
    suspects, request = Suspects(7), Request()
    suspect, before = suspects.lost(PATH, BODY, 0.0)
    assert not before
    _, before = suspects.lost(PATH, BODY, 0.0)
    assert before
    suspect.waiting.append(request)
    suspects.tell(suspect, request, death("b"), 0.0)
    assert request.words == 0
    suspects.tell(suspect, request, None, 0.0)
    assert request.words == 1
    assert not suspect.is_given_up


def test_a_body_that_was_given_up_is_refused_then_tried_by_one_request_at_a_time() -> None:
    suspects, suspect = given_up()
    first, second = Request(), Request()
    assert not suspect.admits(first, RULE.first_backoff_s - 1)
    assert suspect.admits(first, RULE.first_backoff_s)
    assert not suspect.admits(second, RULE.first_backoff_s)
    suspects.ended(suspect, first, answered=False)  # its client went away: nothing is known
    assert suspect.admits(second, RULE.first_backoff_s)


def test_another_engine_lost_doubles_the_time_for_which_it_is_refused() -> None:
    suspects, suspect = given_up()
    request, now_s = Request(), RULE.first_backoff_s
    assert suspect.admits(request, now_s)
    assert lose(suspects, request, "c", now_s).is_given_up
    assert suspect.breaker.left_s(now_s) == 2 * RULE.first_backoff_s


def test_an_answer_clears_it() -> None:
    suspects, suspect = given_up()
    request = Request()
    assert suspect.admits(request, RULE.first_backoff_s)
    suspects.ended(suspect, request, answered=True)
    assert suspects.find(PATH, BODY) is None


def test_memory_is_bounded_in_number_and_in_time() -> None:
    suspects = Suspects(7)
    for number in range(MOST_SUSPECTS + 10):
        suspect, _ = suspects.lost(PATH, b"%d" % number, float(number > 100))
        suspects.tell(suspect, Request(), death("a"), 0.0)
    assert len(suspects) == MOST_SUSPECTS
    suspects.tick(KEPT_S)
    assert len(suspects) == MOST_SUSPECTS - 91
    suspects.tick(KEPT_S + 1)
    assert len(suspects) == 0


def test_a_body_that_keeps_killing_is_remembered_in_bounded_space() -> None:
    suspects = Suspects(7)
    for number in range(100):
        suspect = lose(suspects, Request(), "a", number=number)
    assert len(suspect.deaths) <= 8
    assert suspect.engines == "a"


async def test_a_question_is_shared_but_not_with_who_lost_a_request_after_it_was_put() -> None:
    answers: list[asyncio.Future[bool]] = []
    told: list[tuple[str, bool]] = []

    async def ask() -> bool:
        answers.append(asyncio.get_running_loop().create_future())
        return await answers[-1]

    inquest = Inquest(ask)
    inquest.ask(lambda gone: told.append(("one", gone)))
    inquest.ask(lambda gone: told.append(("two", gone)))
    await asyncio.sleep(0)
    inquest.ask(lambda gone: told.append(("later", gone)))
    assert len(answers) == 1
    answers[0].set_result(False)
    while len(answers) < 2:
        await asyncio.sleep(0)
    assert told == [("one", False), ("two", False)]
    answers[1].set_result(True)
    while len(told) < 3:
        await asyncio.sleep(0)
    assert told[2] == ("later", True)


@pytest.mark.parametrize("under_way", [True, False])
async def test_who_asked_is_told_when_nobody_will_know(under_way: bool) -> None:
    told: list[bool] = []

    async def ask() -> bool:
        await asyncio.Event().wait()
        return True

    inquest = Inquest(ask)
    inquest.ask(told.append)
    if under_way:
        await asyncio.sleep(0)
    inquest.close()
    while not told:
        await asyncio.sleep(0)
    assert told == [False]
