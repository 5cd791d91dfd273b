"""Requests that all begin alike: a hot prefix, to be sent beside other traffic."""

import random
from collections.abc import Iterator

from router.filler import filler
from router.replay.call import BodyWriter, Call, FollowUp
from router.replay.exchange import Exchange

NAME = "hot-prefix"
SHARED_TOKENS = 4096
OWN_TOKENS = 100
ANSWER_TOKENS = 200


class HotPrefixSource:
    """Single requests at random (Poisson), ``rate`` a second: one long system prompt, a short question of their own.

    The seed chooses the prompt, so that another seed is another prefix. ``limit`` ends after so many calls; None goes
    on for ever.
    """

    def __init__(self, writer: BodyWriter, rate: float, seed: int, *, limit: int | None) -> None:
        self.total = limit
        self._writer = writer
        self._rate = rate
        self._seed = seed
        self._system = filler(f"{NAME}/{seed}".encode(), SHARED_TOKENS).decode()

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        rng, now_s, number = random.Random(self._seed), 0.0, 0
        while self.total is None or number < self.total:
            now_s += rng.expovariate(self._rate)
            yield now_s, self._call(number)
            number += 1

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        return None

    def _call(self, number: int) -> Call:
        question = filler(f"{NAME}/{self._seed}/{number}".encode(), OWN_TOKENS).decode()
        messages = [{"role": "system", "content": self._system}, {"role": "user", "content": question}]
        return Call(lambda: self._writer.messages(messages, ANSWER_TOKENS))
