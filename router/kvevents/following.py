"""Following one engine's numbered messages: nothing twice, nothing missed, nothing of an earlier life.

Sans-IO: a message goes in, what to do comes out, in order. Sequence numbers start at 0 when an engine starts and only
grow. A number that jumps means that messages were lost: they are asked for again, and what arrives meanwhile waits. A
number that goes *back* with the same content is one that a replay brought already; with other content it means that
the engine restarted. Numbers alone cannot show a restart after which just as many messages were missed, so whenever a
connection comes back the last message is asked for again and compared. A subscription takes effect some time after its
connection, which nothing announces but a message: until one comes, :meth:`Follower.check` asks again. So it does after
a replay that failed, until everything that is kept could be had. An engine's socket drops what a slow reader of a long
replay has no room for, but nothing before the first message: a replay that begins later is of an engine that keeps no
more, one with a hole is asked for again from there.

::

    state       event                       next        what to do
    ----------  --------------------------  ----------  ------------------------------------------
    following   the expected number         following   apply
    following   a later number              replaying   keep it, ask for what is missing
    any         an earlier one, known       (same)      nothing
    any         an earlier one, not known   (as new)    clear, then as if it were the first message
    replaying   a live, later message       replaying   keep it (too many: clear, go on without)
    verifying   a live message              verifying   the same
    replaying   a replayed number <= known  replaying   nothing
    replaying   the expected number         replaying   apply
    replaying   a later number, at first    replaying   clear (the rest is too old to be had), apply
    replaying   a later number, after some  replaying   ask for what was dropped
    replaying   the end of the replay       following   apply what was kept; ask again for a gap in it
    replaying   it failed after some        replaying   ask for the rest
    replaying   it failed                   following   clear if anything was missed, apply what was kept
    following   the connection is back      verifying   ask again for the last message that was applied
    any other   the connection is back      verifying   the same instead; what waited may be of an earlier life
    verifying   that very message           replaying   nothing: it is the same life, the rest is what was missed
    verifying   another one, or the end     replaying   clear, ask for everything: the engine restarted
    verifying   that failed                 following   clear, apply what was kept
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum

from xxhash import xxh3_64_intdigest

MAX_KEPT = 10_000
"""Messages that may wait for a replay; as many as an engine keeps for one."""

REMEMBERED = 1024
"""Applied messages whose content is recognised when it comes again."""


class State(Enum):
    """Where a follower is."""

    FOLLOWING = "following"
    REPLAYING = "replaying"
    VERIFYING = "verifying"


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply this payload now."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget what is known: the engine restarted, or something is lost for good."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskReplay:
    """Ask the replay socket for everything from this number on."""

    start: int


Action = Apply | Clear | AskReplay


@dataclass(slots=True)
class FollowerCounters:
    """What happened on the way; each a reason to look, none a reason to stop."""

    applied: int = 0
    gaps: int = 0
    restarts: int = 0
    lost: int = 0
    """Times that messages could not be had any more."""
    duplicates: int = 0


class Follower:
    """Decides what to do with the messages of one engine process; ``can_replay`` says whether it has a replay socket.

    :meth:`begin` once, before the first message.
    """

    def __init__(self, *, can_replay: bool, max_kept: int = MAX_KEPT) -> None:
        self.counters = FollowerCounters()
        self.state = State.FOLLOWING
        self._can_replay = can_replay
        self._max_kept = max_kept
        self._expected = 0
        self._is_heard = True
        self._is_partial = False
        self._has_brought = False
        self._kept: deque[tuple[int, bytes]] = deque()
        self._digests: dict[int, int] = {}

    @property
    def expected(self) -> int:
        """The number of the next message to apply."""
        return self._expected

    def begin(self) -> list[Action]:
        """Ask for the past, so that a new reader of an old engine knows what is there."""
        return self._ask() if self._can_replay else []

    @property
    def is_heard(self) -> bool:
        """Whether nothing can be missed unnoticed: a message has come since the last connection, so others will.

        Not while something is missing that could not be asked for.
        """
        return (self._is_heard and not self._is_partial) or not self._can_replay

    def connected(self) -> list[Action]:
        """The publisher can be reached (again): make sure that it is the same life, and get what was missed."""
        self._is_heard = False
        if not self._can_replay:
            return []
        self._kept.clear()
        if self.state is State.REPLAYING and self._expected == 0:
            return []  # that is what is being asked for
        if self._expected == 0:
            return self._ask()
        self.state = State.VERIFYING
        return [AskReplay(self._expected - 1)]

    def check(self) -> list[Action]:
        """See whether anything was missed that no later message has shown."""
        return self._ask() if self._can_replay and self.state is State.FOLLOWING else []

    def disconnected(self) -> list[Action]:
        """The publisher cannot be reached: without a replay nobody will know what is missed meanwhile."""
        if self._can_replay or self._expected == 0:
            return []
        return self._lose("the connection was lost, and there is no replay")

    def begin_again(self, reason: str) -> list[Action]:
        """Forget everything, because somebody else saw the engine lose its cache, and ask for all that is kept."""
        self._kept.clear()
        self._start_over()
        self.state = State.FOLLOWING
        return [Clear(reason), *self.begin()]

    def live(self, number: int, payload: bytes) -> list[Action]:
        """Take in a message of the publisher."""
        self._is_heard = True
        if number < self._expected or (self._kept and number <= self._kept[-1][0]):
            return self._earlier(number, payload)
        if self.state is State.VERIFYING or (self.state is State.REPLAYING and (self._kept or number > self._expected)):
            return self._keep(number, payload)
        if number > self._expected:
            return self._gap(number, payload)
        return self._apply(number, payload)

    def replayed(self, number: int, payload: bytes) -> list[Action]:
        """Take in a message of the replay socket."""
        if self.state is State.VERIFYING:
            return self._verify(number, payload)
        if self.state is not State.REPLAYING or number < self._expected:
            self.counters.duplicates += 1
            return []
        if number > self._expected and self._has_brought:
            return self._ask()
        actions: list[Action] = []
        if number > self._expected:
            actions += self._lose(f"messages {self._expected} to {number - 1} are too old to be replayed")
        self._has_brought = True
        return actions + self._apply(number, payload)

    def replay_ended(self) -> list[Action]:
        """The replay is complete: go on with what arrived meanwhile."""
        if self.state is State.VERIFYING:
            return self._other_life()
        if self.state is not State.REPLAYING:
            return []
        if self._is_partial:
            return self.begin_again("what could not be had before is asked for again")
        return self._go_on()

    def replay_failed(self, reason: str) -> list[Action]:
        """The replay did not come, or not all of it: what was missed is lost, unless it is on its way."""
        if self.state is State.FOLLOWING:
            return []
        if self.state is State.REPLAYING and self._has_brought:
            return self._ask()
        actions = self._give_up(reason)
        self._is_partial |= bool(actions) and isinstance(actions[0], Clear)
        self._is_heard &= self._expected > 0
        return actions

    def _give_up(self, reason: str) -> list[Action]:
        """Go on without what was asked for."""
        actions: list[Action] = []
        if self.state is State.VERIFYING or (self._kept and self._kept[0][0] > self._expected):
            actions += self._lose(reason)
            self._start_over()
            self._expected = self._kept[0][0] if self._kept else 0
        self._has_brought = False
        return actions + self._go_on()

    def _go_on(self) -> list[Action]:
        """Apply what was kept, as far as nothing is missing."""
        self.state = State.FOLLOWING
        actions: list[Action] = []
        while self._kept:
            number, payload = self._kept[0]
            if number > self._expected and (self._has_brought or actions):
                self.counters.gaps += 1
                return actions + self._ask()
            self._kept.popleft()
            if number < self._expected:
                self.counters.duplicates += 1
                continue
            if number > self._expected:
                actions += self._lose(f"messages {self._expected} to {number - 1} were not replayed")
            actions += self._apply(number, payload)
        return actions

    def _apply(self, number: int, payload: bytes) -> list[Action]:
        self._expected = number + 1
        self._digests[number] = xxh3_64_intdigest(payload)
        self._digests.pop(number - REMEMBERED, None)
        self.counters.applied += 1
        return [Apply(payload)]

    def _gap(self, number: int, payload: bytes) -> list[Action]:
        self.counters.gaps += 1
        if not self._can_replay:
            return [
                *self._lose(f"messages {self._expected} to {number - 1} were missed"),
                *self._apply(number, payload),
            ]
        self._kept.append((number, payload))
        return self._ask()

    def _keep(self, number: int, payload: bytes) -> list[Action]:
        if len(self._kept) < self._max_kept:
            self._kept.append((number, payload))
            return []
        self._kept.append((number, payload))
        return self._give_up("too many messages came during a replay")

    def _earlier(self, number: int, payload: bytes) -> list[Action]:
        if self._digests.get(number) == xxh3_64_intdigest(payload):
            self.counters.duplicates += 1
            return []
        return self._restarted(number, payload)

    def _verify(self, number: int, payload: bytes) -> list[Action]:
        if number != self._expected - 1 or self._digests.get(number) != xxh3_64_intdigest(payload):
            return self._other_life()
        self.state = State.REPLAYING
        self._has_brought = False
        return []

    def _other_life(self) -> list[Action]:
        self.counters.restarts += 1
        self._start_over()
        return [Clear("the engine restarted"), *self._ask()]

    def _restarted(self, number: int, payload: bytes) -> list[Action]:
        self.counters.restarts += 1
        self._kept.clear()
        self._start_over()
        self.state = State.FOLLOWING
        after = self._gap(number, payload) if number else self._apply(number, payload)
        return [Clear("the engine restarted"), *after]

    def _lose(self, reason: str) -> list[Action]:
        self.counters.lost += 1
        return [Clear(reason)]

    def _start_over(self) -> None:
        """Know nothing of this engine."""
        self._digests.clear()
        self._expected = 0
        self._is_partial = False

    def _ask(self) -> list[Action]:
        self.state = State.REPLAYING
        self._is_partial &= self._expected > 0
        self._has_brought = False
        return [AskReplay(self._expected)]
