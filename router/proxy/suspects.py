"""Request bodies that were at engines when these died, so that no request takes a fleet down with it.

Some requests kill the engine that serves them. Nothing in such a request shows it, and whatever else was at the engine
is lost with it. What was there at one death may be innocent, what was there at two has cost enough. The rule, in which
nothing is to be tuned:

- a request that is lost to a dying engine is tried elsewhere at once, as ever;
- one that is lost again waits for word of the engines (:mod:`router.proxy.inquest`); where two died, it is given up;
- the same body is then left alone as an ejected instance is (:mod:`router.proxy.breaker`): refused for 30 s, let in
  once, refused for twice as long when that has cost another engine, and forgotten once it was answered.

A body is known by a hash of its path and bytes. Pure: no clock and no connection of its own.
"""

from collections import OrderedDict
from typing import NamedTuple, Protocol

import xxhash

from router.proxy.breaker import Breaker, BreakerRule, BreakerState

RULE = BreakerRule(failures=2, first_backoff_s=30.0, most_backoff_s=600.0)
MOST_SUSPECTS = 4096
MOST_DEATHS = 8
"""Deaths of which a body's record is kept."""
KEPT_S = 900.0
"""How long a body is remembered after its last loss."""


class Death(NamedTuple):
    """One death of one engine; the number tells it from the engine's others."""

    engine: str
    instance_id: str
    number: int


class Waiting(Protocol):
    """A request that cannot go on before it is known what became of an engine."""

    def on_word(self) -> None:
        """Everything that was asked about its body is known."""
        ...


class Suspect:
    """One body: the deaths it was at, the losses that may be further ones, and who waits for word of them."""

    __slots__ = ("breaker", "deaths", "key", "noted_s", "pending", "waiting")

    def __init__(self, key: int) -> None:
        self.key = key
        self.breaker = Breaker(RULE, _nobody)
        self.deaths: list[Death] = []
        self.pending = 0
        self.waiting: list[Waiting] = []
        self.noted_s = 0.0

    @property
    def engines(self) -> str:
        """Names of the engines that died, in order."""
        return ", ".join(dict.fromkeys(death.engine for death in self.deaths))

    @property
    def is_given_up(self) -> bool:
        """Whether it has cost what a request may cost."""
        return self.breaker.state is BreakerState.OPEN

    def admits(self, request: object, now_s: float) -> bool:
        """Tell whether a request with this body may be sent; after a back-off, one at a time."""
        breaker = self.breaker
        breaker.tick(now_s)
        if breaker.state in (BreakerState.OPEN, BreakerState.TRIAL):
            return False
        breaker.chosen(request)
        return True


class Suspects:
    """The bodies that are remembered, bounded in number and time. Empty, and without cost, while no engine dies."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known: OrderedDict[int, Suspect] = OrderedDict()
        self.given_up = 0
        """Requests that were ended because two engines had died with them."""
        self.refused = 0
        """Requests that were refused because their body had cost engines before."""

    def __len__(self) -> int:
        return len(self._known)

    def find(self, path: bytes, body: bytes) -> Suspect | None:
        """Return what is known of a body, or None."""
        return self._known.get(self._key(path, body))

    def lost(self, path: bytes, body: bytes, now_s: float) -> tuple[Suspect, bool]:
        """Note that an attempt with this body may have ended with its engine; :meth:`tell` must follow.

        :returns: what is known of the body, and whether it had been lost before.
        """
        key = self._key(path, body)
        suspect = self._known.get(key)
        if suspect is None:
            if len(self._known) >= MOST_SUSPECTS:
                self._known.popitem(last=False)
            suspect = self._known[key] = Suspect(key)
        before = bool(suspect.deaths) or suspect.pending > 0
        self._known.move_to_end(key)
        suspect.pending += 1
        suspect.noted_s = now_s
        return suspect, before

    def tell(self, suspect: Suspect, request: object, death: Death | None, now_s: float) -> None:
        """Take in what became of an engine that :meth:`lost` was told of; None when it lives."""
        suspect.pending -= 1
        if death is not None and death not in suspect.deaths:
            suspect.deaths = [*suspect.deaths[1 - MOST_DEATHS :], death]
            suspect.breaker.failed(request, now_s, certain=False)
        if suspect.pending:
            return
        if not suspect.deaths:
            self._forget(suspect)
        waiting, suspect.waiting = suspect.waiting, []
        for one in waiting:
            one.on_word()

    def ended(self, suspect: Suspect, request: object, *, answered: bool) -> None:
        """A request with this body has ended; one that was answered whole clears it."""
        if answered:
            self._forget(suspect)
        else:
            suspect.breaker.ended(request)

    def tick(self, now_s: float) -> None:
        """Forget what was noted long ago."""
        while self._known:
            oldest = next(iter(self._known.values()))
            if oldest.noted_s > now_s - KEPT_S:
                return
            self._forget(oldest)

    def _key(self, path: bytes, body: bytes) -> int:
        return xxhash.xxh3_128_intdigest(path + b"\n" + body, self._seed)

    def _forget(self, suspect: Suspect) -> None:
        if self._known.get(suspect.key) is suspect:
            del self._known[suspect.key]


def _nobody(_ejected: bool) -> None:
    """A body is in no rotation that it could leave."""
