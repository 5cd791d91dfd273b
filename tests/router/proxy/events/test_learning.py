"""Lessons: what is asked of an engine's tokenizer, what is not, and what becomes of lessons there is no time for."""

import asyncio
from typing import Any

import orjson
import pytest

from router.proxy.events import answer_copy, learning
from router.proxy.events.answer_copy import AnswerCopy, CopyBudget
from router.proxy.events.learning import Learner, Lesson, Text
from router.proxy.link import Link
from router.proxy.routes import ROUTES
from tests.fakes.engine import FakeEngine, Peer, Received, http
from tests.router.proxy.harness import Proxy, chat_body, proxying

CHAT, COMPLETIONS = ROUTES[b"/v1/chat/completions"], ROUTES[b"/v1/completions"]


def subject_of(given: Lesson) -> Text | None:
    """Find the subject of a lesson."""
    reading = learning.subject_of(given)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: Text | None = end.value
            return found


def answer(content: str = "hi") -> bytes:
    message = {"role": "assistant", "content": content}
    return orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def lesson(request: dict[str, Any], said: bytes | None = None, route: Any = CHAT) -> Lesson:
    return Lesson(route, "m", orjson.dumps(request), said, False, None, 10, None)


class Tokenizer(FakeEngine):
    """An engine that answers ``/tokenize`` when it is let."""

    def __init__(self, status: str = "200 OK") -> None:
        super().__init__(self._serve)
        self.status = status
        self.let = asyncio.Event()
        self.let.set()
        self.asked: list[dict[str, Any]] = []
        self.asked_s: list[float] = []

    async def _serve(self, request: Received, peer: Peer) -> None:
        await self.let.wait()
        self.asked_s.append(asyncio.get_running_loop().time())
        self.asked.append(orjson.loads(request.body))
        peer.send(http(self.status, b'{"count":3,"tokens":[1,2,3]}'))


class Classroom:
    """A learner with one engine."""

    def __init__(self, proxy: Proxy) -> None:
        self.link: Link = proxy.plane.links[0]
        self.link.copies = CopyBudget()
        self.unusable: list[str] = []
        self.learner = Learner(proxy.plane, lambda _, reason: self.unusable.append(reason))
        proxy.plane.fleet.follow_events(self.link.instance, 2)

    async def learn(self, *lessons: Lesson) -> learning.LearningCounts:
        for each in lessons:
            self.learner.offer(self.link, each)
        await self.learner.drained()
        return self.learner.counts(self.link)


def test_a_conversation_is_asked_for_with_its_answer_and_what_renders_it() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    request = chat_body("hello", tools=tools, chat_template_kwargs={"a": 1}, temperature=1, cache_salt="s")
    subject = subject_of(lesson(request, answer("hi")))
    assert subject is not None
    assert subject.question == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
        "add_generation_prompt": False,
        "tools": tools,
        "chat_template_kwargs": {"a": 1},
    }
    assert subject.cache_salt == "s"
    next_turn = {**request, "messages": [*subject.question["messages"], {"role": "user", "content": "and?"}]}
    assert CHAT.extract(next_turn).text.startswith(subject.text)


def test_an_answer_that_was_not_kept_leaves_the_prompt_to_be_learnt() -> None:
    subject = subject_of(lesson(chat_body("hello")))
    assert subject is not None
    assert subject.question["messages"] == [{"role": "user", "content": "hello"}]


def test_a_completion_is_its_prompt_and_what_came() -> None:
    said = orjson.dumps({"choices": [{"index": 0, "text": " upon a time", "finish_reason": "stop"}]})
    subject = subject_of(lesson({"model": "m", "prompt": "once"}, said, COMPLETIONS))
    assert subject is not None
    assert (subject.text, subject.question) == (b"once upon a time", {"model": "m", "prompt": "once upon a time"})


@pytest.mark.parametrize(
    ("request_", "route"),
    [
        ({"prompt": [1, 2]}, COMPLETIONS),
        ({"prompt": ["a", "b"]}, COMPLETIONS),
        ({"messages": "x"}, CHAT),
        ({"messages": [{"role": "assistant", "content": "a"}], "continue_final_message": True}, CHAT),
        ({"prompt": "x", "truncate_prompt_tokens": 8}, COMPLETIONS),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, CHAT),
    ],
)
def test_what_is_no_text_is_not_asked_for(request_: dict[str, Any], route: Any) -> None:
    assert subject_of(lesson(request_, None, route)) is None


async def test_what_is_known_is_not_asked_for_again() -> None:
    async with Tokenizer() as engine, proxying(engine) as proxy:
        room = Classroom(proxy)
        same = lesson(chat_body("x" * 640), answer())
        counts = await room.learn(same)
        assert (counts.learnt, counts.known) == (1, 0)
        counts = await room.learn(same)
        assert (counts.learnt, counts.known, len(engine.asked)) == (1, 1, 1)


async def test_the_oldest_lessons_are_dropped_when_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_LESSONS", 3)
    async with Tokenizer() as engine, proxying(engine) as proxy:
        room = Classroom(proxy)
        engine.let.clear()
        for number in range(learning.AT_ONCE):
            room.learner.offer(room.link, lesson(chat_body(f"first {number}")))
        while room.learner.waiting(room.link):
            await asyncio.sleep(0)
        for number in range(5):
            room.learner.offer(room.link, lesson(chat_body(f"later {number}")))
        assert (room.learner.waiting(room.link), room.learner.counts(room.link).dropped) == (3, 2)
        engine.let.set()
        await room.learner.drained()
        asked = {request["messages"][0]["content"] for request in engine.asked}
        assert asked == {"first 0", "first 1", "later 2", "later 3", "later 4"}


async def test_very_long_requests_are_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_BODY_BYTES", 1000)
    async with Tokenizer() as engine, proxying(engine) as proxy:
        counts = await Classroom(proxy).learn(lesson(chat_body("x" * 1000)), lesson(chat_body("x")))
        assert (counts.dropped, counts.learnt, len(engine.asked)) == (1, 1, 1)


async def test_a_tokenizer_that_is_not_there_is_reported_and_a_refusal_is_not() -> None:
    async with Tokenizer("404 Not Found") as engine, proxying(engine) as proxy:
        room = Classroom(proxy)
        await room.learn(lesson(chat_body("a")))
        assert room.unusable == ["its /tokenize answers 404"]
        engine.status = "400 Bad Request"
        counts = await room.learn(lesson(chat_body("b")))
        assert (counts.failed, len(room.unusable)) == (2, 1)


async def test_what_waits_is_forgotten_with_its_instance() -> None:
    async with Tokenizer() as engine, proxying(engine) as proxy:
        room = Classroom(proxy)
        engine.let.clear()
        for number in range(5):
            room.learner.offer(room.link, lesson(chat_body(str(number))))
        room.learner.forget(room.link)
        assert room.learner.waiting(room.link) == 0
        await room.learner.close()
        assert room.learner._waiting_bytes == 0


def test_copies_are_whole_up_to_their_limit_and_tails_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_copy, "MOST_ANSWER_BYTES", 50_000)
    budget = CopyBudget()
    copy = AnswerCopy(budget)
    for number in range(40):
        copy.add(b"%d" % (number % 10) * 1000)
    assert (len(copy.bytes()), copy.whole, budget.held_bytes) == (40_000, True, 40_000)
    for _ in range(40):
        copy.add(b"x" * 1000)
    assert (copy.whole, budget.held_bytes) == (False, 0)
    assert copy.bytes().endswith(b"x" * 16_000)
    assert len(copy.bytes()) < 50_000
    copy.release()
    assert budget.held_bytes == 0


def test_all_copies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_copy, "MOST_BYTES", 1500)
    budget = CopyBudget()
    first, second = AnswerCopy(budget), AnswerCopy(budget)
    first.add(b"a" * 1000)
    second.add(b"b" * 1000)
    assert (first.whole, second.whole, budget.held_bytes) == (True, False, 1000)
    first.release()
    assert budget.held_bytes == 0


async def test_only_so_many_lessons_begin_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_A_SECOND", 20)
    async with Tokenizer() as engine, proxying(engine) as proxy:
        counts = await Classroom(proxy).learn(*(lesson(chat_body(f"{number} hello there")) for number in range(6)))
        assert counts.learnt == 6
        assert engine.asked_s[-1] - engine.asked_s[0] >= 4 / 20  # the first may be late, and no other early
