"""One engine process's events from message to residency: follower, decoder and residency put together.

Still sans-IO: messages in, changes to the sink, and now and then the wish for a replay. Everything runs in the event
loop's thread, a message at a time.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Protocol, Self

import msgspec

from router.core.prefix.token_chain import TokenHasher
from router.kvevents.decoding import decode_batch
from router.kvevents.errors import DecodeError
from router.kvevents.following import Action, Apply, AskReplay, Clear, Follower, State
from router.kvevents.residency import DEFAULT_MAX_BLOCKS, Changes, EngineResidency
from router.kvevents.source import EventSource

TOLD_AT_ONCE = 8192
"""Blocks that are told in one go when everything is told anew."""


class ResidencySink(Protocol):
    """Whoever keeps the index of what is where."""

    def residency_changed(self, instance: str, rank: int, changes: Changes) -> None:
        """Take in what changed at one rank of an instance."""
        ...


class FeedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How well one feed is doing, for metrics and pages. Counts are since the feed began.

    ``lag_s`` is how old the last applied batch was when it was applied, by the engine's clock and ours; None before
    the first. ``next_number`` is that of the message to apply next. ``last_loss`` says why everything was
    forgotten the last time; empty when it never was.
    """

    instance: str
    rank: int
    connected: bool
    replaying: bool
    told: bool
    """Whether the sink is told what is there; not while that is in doubt."""
    blocks: int
    block_tokens: int | None
    lag_s: float | None
    next_number: int
    applied: int
    gaps: int
    restarts: int
    lost: int
    duplicates: int
    undecodable: int
    refused_events: int
    unknown_events: int
    orphans: int
    unknown_removals: int
    other_groups: int
    overflows: int
    last_loss: str
    malformed: int = 0
    """Messages without number or payload, as the socket counted them."""


class Feed:
    """Turns the messages of one engine process into changes of residency.

    The sink is told nothing until :meth:`tell`. When the connection is lost, it is told that everything is gone, for
    nobody can say whether the engine that comes back is the same; when it was, :meth:`tell` gives everything back.
    """

    def __init__(
        self, instance: str, rank: int, follower: Follower, residency: EngineResidency, sink: ResidencySink
    ) -> None:
        self.instance = instance
        self.rank = rank
        self._follower = follower
        self._residency = residency
        self._sink = sink
        self._connected = False
        self._told = False
        self._tellings = 0
        self._lag_s: float | None = None
        self._undecodable = 0
        self._refused = 0
        self._unknown = 0
        self._last_loss = ""
        self.clears = 0
        """Times that the engine itself told that its cache was cleared."""

    @classmethod
    def of(
        cls,
        instance: str,
        source: EventSource,
        hasher: TokenHasher,
        sink: ResidencySink,
        max_blocks: int = DEFAULT_MAX_BLOCKS,
    ) -> Self:
        """Make the feed of a source; at most ``max_blocks`` blocks are kept for it."""
        follower = Follower(can_replay=source.replay is not None)
        return cls(instance, source.rank, follower, EngineResidency(hasher, max_blocks), sink)

    @property
    def residency(self) -> EngineResidency:
        """What is known to be resident, to be read only."""
        return self._residency

    def begin(self) -> int | None:
        """Start; return the number to replay from, if the past is to be asked for."""
        return self._perform(self._follower.begin(), 0.0)

    def live(self, number: int, payload: bytes, unix_s: float) -> int | None:
        """Take in a published message at the time ``unix_s``; return the number to replay from, if any."""
        return self._perform(self._follower.live(number, payload), unix_s)

    def connected(self, unix_s: float) -> int | None:
        """The publisher can be reached (again); return the number to replay from, if any."""
        self._connected = True
        return self._perform(self._follower.connected(), unix_s)

    @property
    def is_heard(self) -> bool:
        """Whether nothing can be missed unnoticed; until then :meth:`check` from time to time."""
        return self._follower.is_heard

    def check(self) -> int | None:
        """See whether anything was missed that no later message shows; return the number to replay from, if any."""
        return self._perform(self._follower.check(), 0.0) if self._connected else None

    def disconnected(self) -> None:
        """The publisher cannot be reached: what is known is in doubt, and lost where nothing can be asked again."""
        self._connected = False
        self.doubt()
        self._perform(self._follower.disconnected(), 0.0)

    @property
    def settled(self) -> bool:
        """Whether what is known is what the engine holds: connected, and nothing is being asked for."""
        return self._connected and self._follower.state is State.FOLLOWING

    @property
    def connected_now(self) -> bool:
        """Whether the publisher can be reached."""
        return self._connected

    @property
    def applied(self) -> int:
        """How many messages were applied."""
        return self._follower.counters.applied

    @property
    def restarts(self) -> int:
        """How often the engine was seen to have restarted."""
        return self._follower.counters.restarts

    @property
    def told(self) -> bool:
        """Whether the sink is told what is there."""
        return self._told

    def doubt(self) -> None:
        """Tell the sink that nothing is there, and nothing more until :meth:`tell`."""
        if self._told:
            self._told = False
            self._sink.residency_changed(self.instance, self.rank, Changes(cleared=True))

    def hush(self) -> None:
        """Tell the sink nothing more until :meth:`tell`; it has itself forgotten what it was told."""
        self._told = False

    def tell(self) -> Iterator[None]:
        """Tell everything to a sink that knows nothing yet, a slice for each turn, and every change from now on.

        Ends early when what is known comes into doubt.
        """
        self._told = True
        self._tellings += 1
        telling = self._tellings
        rest = iter(self._residency.parents_first)
        while slice_ := list(islice(rest, TOLD_AT_ONCE)):
            self._tell(Changes(present={chain: True for chain in slice_ if self._residency.holds(chain)}))
            yield
            if not self._told or telling != self._tellings:
                return

    def replayed(self, number: int, payload: bytes, unix_s: float) -> int | None:
        """Take in a replayed message; return the number to begin again from, if any."""
        return self._perform(self._follower.replayed(number, payload), unix_s)

    def replay_ended(self, unix_s: float) -> int | None:
        """The replay that was asked for is complete; return the number to begin again from, if any."""
        return self._perform(self._follower.replay_ended(), unix_s)

    def replay_failed(self, reason: str, unix_s: float) -> int | None:
        """The replay that was asked for did not come, or not all; return the number to go on from, if any."""
        return self._perform(self._follower.replay_failed(reason), unix_s)

    def begin_again(self, reason: str) -> int | None:
        """Drop what is known because somebody else saw the engine lose it; return the number to replay from, if any."""
        return self._perform(self._follower.begin_again(reason), 0.0)

    def status(self) -> FeedStatus:
        """Return how the feed is doing."""
        follower, residency = self._follower.counters, self._residency.counters
        return FeedStatus(
            instance=self.instance,
            rank=self.rank,
            connected=self._connected,
            replaying=self._follower.state is not State.FOLLOWING,
            told=self._told,
            blocks=len(self._residency),
            block_tokens=self._residency.block_tokens,
            lag_s=self._lag_s,
            next_number=self._follower.expected,
            applied=follower.applied,
            gaps=follower.gaps,
            restarts=follower.restarts,
            lost=follower.lost,
            duplicates=follower.duplicates,
            undecodable=self._undecodable,
            refused_events=self._refused + residency.bad_tokens,
            unknown_events=self._unknown,
            orphans=residency.orphans,
            unknown_removals=residency.unknown_removals,
            other_groups=residency.other_groups,
            overflows=residency.overflows,
            last_loss=self._last_loss,
        )

    def _perform(self, actions: list[Action], unix_s: float) -> int | None:
        start = None
        for action in actions:
            match action:
                case Apply(payload):
                    self._apply(payload, unix_s)
                case Clear(reason):
                    self._last_loss = reason
                    self._tell(self._residency.clear())
                case AskReplay(number):
                    start = number
        return start

    def _apply(self, payload: bytes, unix_s: float) -> None:
        try:
            batch = decode_batch(payload)
        except DecodeError:
            self._undecodable += 1
            return
        self._refused += batch.refused
        self._unknown += batch.unknown
        self._lag_s = max(0.0, unix_s - batch.unix_s)
        changes = self._residency.apply(batch)
        self.clears += changes.cleared
        self._tell(changes)

    def _tell(self, changes: Changes) -> None:
        if self._told and (changes.cleared or changes.present):
            self._sink.residency_changed(self.instance, self.rank, changes)
