"""Invented traffic for demonstrations: conversations whose next turn carries what was answered before.

The figures in :data:`PERSONAS` are invented to show a router at work; they are calibrated on no recording. Use a
trace where numbers matter.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import count

from router.filler import filler
from router.replay.call import BodyWriter, Call, FollowUp
from router.replay.exchange import Exchange

RATE_SWING = 0.3
"""How far a varying rate goes above and below its mean, as a share of it."""
RATE_PERIOD_S = 180.0
MAX_CONTEXT_TOKENS = 24_000
"""Where a conversation ends whatever its plan."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A log-normal length in tokens, cut to ``low..high``."""

    median: float
    sigma: float
    low: int
    high: int

    def draw(self, rng: random.Random) -> int:
        return int(min(self.high, max(self.low, self.median * math.exp(rng.gauss(0.0, self.sigma)))))


@dataclass(frozen=True, slots=True)
class Persona:
    """A kind of user. Prompts are shared: the k-th of ``system_prompts`` is used in proportion to 1/k."""

    name: str
    system_prompts: int
    system_tokens: Spread
    user_tokens: Spread
    answer_tokens: Spread
    mean_turns: float
    mean_think_s: float


PERSONAS = {
    persona.name: persona
    for persona in (
        Persona(
            "chatbot",
            system_prompts=12,
            system_tokens=Spread(900, 0.5, 300, 3000),
            user_tokens=Spread(70, 0.9, 8, 4000),
            answer_tokens=Spread(180, 0.6, 16, 800),
            mean_turns=4.0,
            mean_think_s=6.0,
        ),
        Persona(
            "agent",
            system_prompts=4,
            system_tokens=Spread(4500, 0.4, 2000, 9000),
            user_tokens=Spread(450, 0.9, 20, 6000),
            answer_tokens=Spread(90, 0.7, 12, 600),
            mean_turns=10.0,
            mean_think_s=1.0,
        ),
        Persona(
            "api",
            system_prompts=20,
            system_tokens=Spread(600, 0.6, 100, 3000),
            user_tokens=Spread(250, 0.8, 16, 4000),
            answer_tokens=Spread(60, 0.6, 4, 400),
            mean_turns=1.0,
            mean_think_s=1.0,
        ),
    )
}


@dataclass(slots=True)
class _Conversation:
    """One conversation under way: what was said, and how many turns are planned after this one."""

    messages: list[dict[str, str]]
    turns_left: int
    tokens: int
    seed: bytes
    user_turns: Iterator[int] = field(default_factory=count)


class ConversationSource:
    """Conversations that begin at random (Poisson) so that about ``rate`` requests a second are sent.

    ``varying`` lets the rate swing gently around its mean. ``limit`` ends after so many calls; None goes on for ever.
    """

    def __init__(
        self, persona: Persona, writer: BodyWriter, rate: float, seed: int, *, varying: bool, limit: int | None
    ) -> None:
        self.total = limit
        self._persona = persona
        self._writer = writer
        self._rate = rate
        self._varying = varying
        self._rng = random.Random(seed)
        self._seed = seed
        self._ids = count()
        self._left = limit
        self._open: dict[str, _Conversation] = {}
        self._systems = [self._system(number) for number in range(persona.system_prompts)]
        self._weights = [1 / (number + 1) for number in range(persona.system_prompts)]

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        for moment_s in merge(self._first_moments(), self._moments()):
            call = self._begin()
            if call is None:
                return
            yield moment_s, call

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        talk = self._open.pop(call.session or "", None)
        if talk is None or exchange is None or talk.turns_left == 0 or talk.tokens > MAX_CONTEXT_TOKENS:
            return None
        talk.messages.append({"role": "assistant", "content": exchange.text})
        talk.turns_left -= 1
        next_call = self._turn(call.session or "", talk)
        if next_call is None:
            return None
        return FollowUp(self._rng.expovariate(1 / self._persona.mean_think_s), next_call)

    def _first_moments(self) -> list[float]:
        """When those speak who were in the middle of a conversation at the start: without them the rate would grow
        slowly. Turns and think times have no memory, so this is the steady state."""
        think_s = self._persona.mean_think_s
        thinking = round(self._rate * (1 - 1 / self._persona.mean_turns) * think_s)
        if self.total is not None:
            thinking = min(thinking, self.total)
        return sorted(self._rng.expovariate(1 / think_s) for _ in range(thinking))

    def _moments(self) -> Iterator[float]:
        """When new conversations begin."""
        now_s = 0.0
        while True:
            now_s += self._rng.expovariate(self._rate / self._persona.mean_turns * self._swing(now_s))
            yield now_s

    def _swing(self, now_s: float) -> float:
        return 1 + RATE_SWING * math.sin(2 * math.pi * now_s / RATE_PERIOD_S) if self._varying else 1.0

    def _begin(self) -> Call | None:
        session = f"{self._seed}-{next(self._ids)}"
        system = self._rng.choices(self._systems, self._weights)[0]
        turns = 1 + int(self._rng.expovariate(1 / (self._persona.mean_turns - 0.5))) if self._multi_turn else 1
        talk = _Conversation([{"role": "system", "content": system}], turns - 1, len(system) // 4, session.encode())
        return self._turn(session, talk)

    @property
    def _multi_turn(self) -> bool:
        return self._persona.mean_turns > 1

    def _turn(self, session: str, talk: _Conversation) -> Call | None:
        if self._left == 0:
            return None
        if self._left is not None:
            self._left -= 1
        asked = self._persona.user_tokens.draw(self._rng)
        answered = self._persona.answer_tokens.draw(self._rng)
        text = filler(b"%b/%d" % (talk.seed, next(talk.user_turns)), asked).decode()
        talk.messages.append({"role": "user", "content": text})
        talk.tokens += asked + answered
        self._open[session] = talk
        messages = list(talk.messages)
        return Call(
            lambda: self._writer.messages(messages, answered), self._persona.name, session, keep_text=self._multi_turn
        )

    def _system(self, number: int) -> str:
        rng = random.Random(f"{self._seed}/{number}")
        tokens = self._persona.system_tokens.draw(rng)
        return filler(f"{self._persona.name}/{self._seed}/{number}".encode(), tokens).decode()
