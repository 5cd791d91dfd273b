"""Learning which tokens a text became: after an answer has ended, from the tokenizer of the engine that gave it.

Low in priority by construction: so many a second, a few questions at a time to each engine, a short queue whose oldest
members are dropped, a time limit for each, and nothing asked that is known already. A conversation whose lesson is
dropped is estimated in its next turn, and learnt after that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import msgspec
import orjson
import structlog

from router.core.prefix.token_chain import pack_tokens
from router.proxy.events.answer_message import chat_message, completion_text
from router.proxy.events.tokenizing import TokenizeFailed, chat_body, text_body, tokenize
from router.proxy.link import Link
from router.proxy.plane import Plane
from router.proxy.prompt.content import is_media
from router.proxy.routes import Route
from router.state.tokenised_text import TokenisedText

_log = structlog.get_logger(__name__)

AT_ONCE = 2
"""Questions to one engine at a time."""
MOST_A_SECOND = 300
"""Lessons of a worker: at less than half a millisecond each, they take a small part of its time however busy it is."""
MOST_LESSONS = 256
"""Lessons that wait for one engine."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of all lessons that wait."""
MOST_BODY_BYTES = 1024 * 1024
"""Longer requests are not learnt: what must be done in one go would hold everything else up."""
_OTHER_RENDERINGS = ("continue_final_message", "truncate_prompt_tokens", "suffix")
"""Members of a request with which the engine does not read the conversation as it stands."""


class Lesson(msgspec.Struct, frozen=True, gc=False):
    """A request and the answer to it; ``answer`` is None where it was not kept whole."""

    route: Route
    model: str
    body: bytes
    answer: bytes | None
    streamed: bool
    adapter: str | None
    prompt_bytes: int
    prompt_tokens: int | None

    @property
    def size_bytes(self) -> int:
        """What the lesson holds."""
        return len(self.body) + len(self.answer or b"")


class Text(msgspec.Struct, frozen=True, gc=False):
    """What a lesson is about: the text as a prompt would have it, and how to ask for its tokens."""

    text: bytes
    cache_salt: str | None
    question: dict[str, Any]


class LearningCounts(msgspec.Struct):
    """What became of lessons."""

    learnt: int = 0
    known: int = 0
    """Nothing was left to learn."""
    dropped: int = 0
    """The queue was full."""
    failed: int = 0
    """The engine gave no tokens."""
    unfit: int = 0
    """Without a text that tokens could be learnt of: images, several prompts."""


class _Desk(msgspec.Struct, eq=False):
    """What waits for one engine, and what became of the rest."""

    queue: deque[Lesson]
    counts: LearningCounts
    at_work: int = 0


class Learner:
    """Takes lessons and works them off. :meth:`close` at the end.

    An engine whose tokenizer turns out to be of no use is reported to ``on_unusable`` with the reason.
    """

    def __init__(self, plane: Plane, on_unusable: Callable[[Link, str], None]) -> None:
        self._plane = plane
        self._on_unusable = on_unusable
        self._desks: dict[Link, _Desk] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_bytes = 0
        self._next_s = 0.0
        """When the next lesson may begin (monotonic)."""
        self._idle = asyncio.Event()
        self._idle.set()

    def counts(self, link: Link) -> LearningCounts:
        """Return what became of the lessons of an instance."""
        desk = self._desks.get(link)
        return LearningCounts() if desk is None else desk.counts

    def waiting(self, link: Link) -> int:
        """Return how many lessons of an instance wait."""
        desk = self._desks.get(link)
        return 0 if desk is None else len(desk.queue)

    def offer(self, link: Link, lesson: Lesson) -> None:
        """Learn from an exchange with an instance when there is time."""
        desk = self._desks.get(link)
        if desk is None:
            desk = self._desks[link] = _Desk(deque(), LearningCounts())
        if len(lesson.body) > MOST_BODY_BYTES:
            desk.counts.dropped += 1
            return
        desk.queue.append(lesson)
        self._waiting_bytes += lesson.size_bytes
        while len(desk.queue) > MOST_LESSONS or (self._waiting_bytes > MOST_BYTES and desk.queue):
            self._waiting_bytes -= desk.queue.popleft().size_bytes
            desk.counts.dropped += 1
        if desk.queue and desk.at_work < AT_ONCE:
            desk.at_work += 1
            task = self._plane.loop.create_task(self._work(link, desk))
            self._tasks.add(task)
            self._idle.clear()
            task.add_done_callback(self._ended)

    def forget(self, link: Link) -> None:
        """The instance is gone: drop what waits for it."""
        desk = self._desks.pop(link, None)
        if desk is not None:
            self._waiting_bytes -= sum(lesson.size_bytes for lesson in desk.queue)
            desk.queue.clear()

    async def drained(self) -> None:
        """Wait until nothing is left to learn."""
        await self._idle.wait()

    async def close(self) -> None:
        """Learn nothing more."""
        for link in list(self._desks):
            self.forget(link)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()

    async def _work(self, link: Link, desk: _Desk) -> None:
        try:
            while desk.queue:
                await self._its_turn()
                if not desk.queue:
                    return
                lesson = desk.queue.popleft()
                self._waiting_bytes -= lesson.size_bytes
                try:
                    await self._learn(link, lesson, desk.counts)
                except Exception:
                    desk.counts.failed += 1
                    _log.exception("lesson_failed", instance=link.instance.config.name)
        finally:
            desk.at_work -= 1

    async def _its_turn(self) -> None:
        """Wait until another lesson may begin; what waits too long for that is dropped from the queue meanwhile."""
        now_s = self._plane.loop.time()
        begins_s = max(now_s, self._next_s)
        self._next_s = begins_s + 1 / MOST_A_SECOND
        if begins_s > now_s:
            await asyncio.sleep(begins_s - now_s)

    async def _learn(self, link: Link, lesson: Lesson, counts: LearningCounts) -> None:
        subject = await _in_turns(subject_of(lesson))
        if subject is None or not subject.text:
            counts.unfit += 1
            return
        fleet = self._plane.fleet
        chain = self._plane.desk.chain(lesson.model, subject.cache_salt, subject.text)
        known = fleet.known.find(subject.text, chain)
        if known is not None and known.text_bytes >= len(subject.text):
            counts.known += 1
            return
        try:
            tokens = pack_tokens(await tokenize(link, subject.question))
        except TokenizeFailed as error:
            counts.failed += 1
            if error.for_good:
                self._on_unusable(link, str(error))
            return
        counts.learnt += 1
        learnt = TokenisedText(
            text=subject.text,
            chain=chain,
            token_ids=tokens,
            model=lesson.model,
            adapter=lesson.adapter,
            cache_salt=subject.cache_salt,
            prompt_bytes=lesson.prompt_bytes,
            prompt_tokens=lesson.prompt_tokens,
        )
        fleet.known.learn(learnt)


async def _in_turns(reading: Generator[None, None, Text | None]) -> Text | None:
    """Read in slices, with room for everything else in between."""
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: Text | None = end.value
            return found
        await asyncio.sleep(0)


def subject_of(lesson: Lesson) -> Generator[None, None, Text | None]:
    """Find what there is to learn, in slices; None where the prompt is no conversation or single text."""
    request = orjson.loads(lesson.body)
    if any(request.get(name) for name in _OTHER_RENDERINGS):
        return None
    salt = request.get("cache_salt")
    salt = salt if isinstance(salt, str) else None
    if lesson.route.name == "chat":
        return (yield from _conversation(lesson, request, salt))
    prompt = request.get("prompt")
    if not isinstance(prompt, str):
        return None
    said = None if lesson.answer is None else completion_text(lesson.answer, streamed=lesson.streamed)
    text = said if said is not None and request.get("echo") else prompt + (said or "")
    return Text(text.encode(), salt, text_body(lesson.model, request, text))


def _conversation(lesson: Lesson, request: dict[str, Any], salt: str | None) -> Generator[None, None, Text | None]:
    messages = request.get("messages")
    if not isinstance(messages, list) or _has_media(messages):
        return None
    said = None
    if lesson.answer is not None:
        said = yield from chat_message(lesson.answer, streamed=lesson.streamed)
    whole = messages if said is None else [*messages, said]
    text = lesson.route.extract({**request, "messages": whole}).text
    return Text(text, salt, chat_body(lesson.model, request, whole))


def _has_media(messages: list[Any]) -> bool:
    contents = (message.get("content") for message in messages if isinstance(message, dict))
    return any(is_media(part) for content in contents if isinstance(content, list) for part in content)
