"""Invented conversations whose next turn carries what was answered before.

The figures in :data:`CHATS` are invented; they are calibrated on no recording. What these conversations have, and no
trace: the engine's own answers in the next prompt, so that generated tokens are found in its cache too.
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


CHATS = Persona(
    "conversations",
    system_prompts=12,
    system_tokens=Spread(900, 0.5, 300, 3000),
    user_tokens=Spread(70, 0.9, 8, 4000),
    answer_tokens=Spread(180, 0.6, 16, 800),
    mean_turns=4.0,
    mean_think_s=6.0,
)
"""People who talk to an assistant, several turns each."""


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

    ``limit`` ends after so many calls; None goes on for ever.
    """

    def __init__(self, persona: Persona, writer: BodyWriter, rate: float, seed: int, *, limit: int | None) -> None:
        self.total = limit
        self._persona = persona
        self._writer = writer
        self._rate = rate
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
            now_s += self._rng.expovariate(self._rate / self._persona.mean_turns)
            yield now_s

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
