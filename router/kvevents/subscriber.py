"""Sockets for feeds: subscriptions to many engines, read in slices so that a flood from one never delays routing.

Messages wait in ZMQ's own bounded queues. One task takes them out in turns, one source after the other, for at most
:data:`SLICE_S` before the event loop does anything else. Whatever a queue had to drop shows up as a gap in the numbers
and is replayed.
"""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from math import inf

import msgspec
import structlog
import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

from router.config import EventDirection
from router.kvevents.errors import ReplayError
from router.kvevents.feed import Feed, FeedStatus
from router.kvevents.replay import NUMBER_BYTES, replay
from router.kvevents.source import EventSource
from router.ports import Clock

_log = structlog.get_logger(__name__)

SLICE_S = 0.0003
"""How long messages are applied in one turn of the event loop (s)."""
TURN_MESSAGES = 16
"""How many messages of one source are taken at most before the next source has its turn."""
QUEUED_MESSAGES = 50_000
"""Messages that ZMQ keeps for us, per source."""
REPLAY_TIMEOUT_S = 5.0
RECHECK_S = 1.0
"""How often sources are looked at without having called: ZMQ signals changes, not states."""
LONGEST_CHECK_S = 64.0
"""How often at least a source is asked for what was missed while nothing shows that the subscription is in effect."""


class _Subscription:
    """The SUB socket of one source, and the replay that may be under way for it."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]", source: EventSource, feed: Feed) -> None:
        self.source = source
        self.feed = feed
        self.replay: asyncio.Task[None] | None = None
        self.malformed = 0
        self._check_after_s = RECHECK_S
        self._check_at_s = inf
        self._socket = context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, QUEUED_MESSAGES)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        self._socket.setsockopt(zmq.IPV6, int("[" in source.events))
        self._socket.setsockopt_string(zmq.SUBSCRIBE, source.topic)
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        try:
            if source.direction is EventDirection.BIND:
                self._socket.bind(source.events)
            else:
                self._socket.connect(source.events)
        except zmq.ZMQError:
            self.close()
            raise

    @property
    def descriptors(self) -> tuple[int, int]:
        """The file descriptors that become readable when a message came or the connection changed."""
        return int(self._socket.getsockopt(zmq.FD)), int(self._monitor.getsockopt(zmq.FD))

    def connection_changes(self) -> Iterator[bool]:
        """Yield True for each connection that was made since the last call, and False for each that was lost."""
        while int(self._monitor.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            yield recv_monitor_message(self._monitor, zmq.NOBLOCK)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED

    @property
    def endpoint(self) -> str:
        """The endpoint that is bound or connected."""
        return self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def receive(self) -> tuple[int, bytes] | None:
        """Return the next message; None when there is none now. What is no message of three frames is counted."""
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            if len(frames) == 3 and len(frames[1]) == NUMBER_BYTES:
                return int.from_bytes(frames[1], "big"), frames[2]
            self.malformed += 1

    def connected(self, clock: Clock) -> int | None:
        """The publisher can be reached (again); return the number to replay from, if any."""
        self._check_after_s = RECHECK_S
        self._check_at_s = clock.monotonic_s() + RECHECK_S
        return self.feed.connected(clock.unix_s())

    def check(self, now_s: float) -> int | None:
        """Return the number to replay from if nothing shows that the subscription is in effect; ever less often."""
        if self.feed.is_heard or now_s < self._check_at_s:
            return None
        self._check_after_s = min(2 * self._check_after_s, LONGEST_CHECK_S)
        self._check_at_s = now_s + self._check_after_s
        return self.feed.check()

    def close(self) -> None:
        """Close the socket and its monitor."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close()


class KvEventReader:
    """Reads any number of sources. Feeds are added and removed while it runs; :meth:`close` once at the end."""

    def __init__(self, clock: Clock, *, replay_timeout_s: float = REPLAY_TIMEOUT_S) -> None:
        self._clock = clock
        self._replay_timeout_s = replay_timeout_s
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._subscriptions: dict[tuple[str, int], _Subscription] = {}
        self._ready: dict[tuple[str, int], None] = {}
        self._work = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._read())
        self._recheck = self._loop.call_later(RECHECK_S, self._check_all)

    def add(self, feed: Feed, source: EventSource) -> str:
        """Subscribe a feed, replacing what was subscribed for that instance and rank; return the endpoint.

        :raises OSError: when the endpoint cannot be bound or is none.
        """
        key = (feed.instance, feed.rank)
        self.remove(*key)
        try:
            subscription = _Subscription(self._context, source, feed)
        except zmq.ZMQError as error:
            raise OSError(error.errno, f"{source.events}: {error.strerror}") from error
        self._subscriptions[key] = subscription
        for descriptor in subscription.descriptors:
            self._loop.add_reader(descriptor, self._call, key)
        self._ask(subscription, feed.begin())
        self._call(key)
        return subscription.endpoint

    def remove(self, instance: str, rank: int) -> None:
        """Unsubscribe; unknown ones are ignored. What the feed has told stays as it is."""
        subscription = self._subscriptions.pop((instance, rank), None)
        if subscription is None:
            return
        self._ready.pop((instance, rank), None)
        if subscription.replay is not None:
            subscription.replay.cancel()
        for descriptor in subscription.descriptors:
            self._loop.remove_reader(descriptor)
        subscription.close()

    def begin_again(self, instance: str, rank: int, reason: str) -> None:
        """Forget what is known of a source and ask for all that it keeps; unknown ones are ignored."""
        subscription = self._subscriptions.get((instance, rank))
        if subscription is not None:
            self._ask(subscription, subscription.feed.begin_again(reason))

    def status(self) -> list[FeedStatus]:
        """Return how every feed is doing."""
        return [
            msgspec.structs.replace(each.feed.status(), malformed=each.malformed)
            for each in self._subscriptions.values()
        ]

    def status_of(self, feed: Feed) -> FeedStatus | None:
        """Return how one feed is doing; None when it is not subscribed."""
        subscription = self._subscriptions.get((feed.instance, feed.rank))
        if subscription is None:
            return None
        return msgspec.structs.replace(subscription.feed.status(), malformed=subscription.malformed)

    @property
    def behind(self) -> int:
        """How many sources have messages that are not taken yet."""
        return len(self._ready)

    async def close(self) -> None:
        """Unsubscribe everything and end."""
        self._recheck.cancel()
        self._task.cancel()
        replays = [each.replay for each in self._subscriptions.values() if each.replay is not None]
        for key in list(self._subscriptions):
            self.remove(*key)
        await asyncio.gather(self._task, *replays, return_exceptions=True)
        self._context.destroy(linger=0)

    def _call(self, key: tuple[str, int]) -> None:
        self._ready[key] = None
        self._work.set()

    def _check_all(self) -> None:
        now_s = self._clock.monotonic_s()
        for key, subscription in self._subscriptions.items():
            self._call(key)
            self._ask(subscription, subscription.check(now_s))
        self._recheck = self._loop.call_later(RECHECK_S, self._check_all)

    async def _read(self) -> None:
        while True:
            await self._work.wait()
            deadline_s = self._clock.monotonic_s() + SLICE_S
            while self._ready and self._clock.monotonic_s() < deadline_s:
                self._take_turn_safely(next(iter(self._ready)), deadline_s)
            if not self._ready:
                self._work.clear()
            await asyncio.sleep(0)

    def _take_turn_safely(self, key: tuple[str, int], deadline_s: float) -> None:
        """Keep a fault of this program to the source whose messages brought it out."""
        try:
            self._take_turn(key, deadline_s)
        except Exception:
            _log.exception("events_failed", instance=key[0], rank=key[1])
            self.begin_again(*key, "reading its events failed")

    def _take_turn(self, key: tuple[str, int], deadline_s: float) -> None:
        """Apply some messages of one source, at least one; it stays in line while it may have more."""
        del self._ready[key]
        subscription = self._subscriptions[key]
        for there in subscription.connection_changes():
            if there:
                self._ask(subscription, subscription.connected(self._clock))
            else:
                subscription.feed.disconnected()
        for _ in range(TURN_MESSAGES):
            message = subscription.receive()
            if message is None:
                return
            self._ask(subscription, subscription.feed.live(*message, self._clock.unix_s()))
            if self._clock.monotonic_s() >= deadline_s:
                break
        self._ready[key] = None

    def _ask(self, subscription: _Subscription, start: int | None) -> None:
        if start is None or subscription.source.replay is None:
            return
        if subscription.replay is not None:
            subscription.replay.cancel()
        subscription.replay = self._loop.create_task(self._replay(subscription, subscription.source.replay, start))

    async def _replay(self, subscription: _Subscription, endpoint: str, start: int) -> None:
        feed = subscription.feed
        again: int | None = start
        while again is not None:
            try:
                again = await self._replay_once(feed, endpoint, again)
            except ReplayError as error:
                again = feed.replay_failed(str(error), self._clock.unix_s())

    async def _replay_once(self, feed: Feed, endpoint: str, start: int) -> int | None:
        """Replay from ``start``; return where to begin again when it turned out to be another life."""
        context = zmq.asyncio.Context.shadow(self._context)
        deadline_s = self._clock.monotonic_s() + SLICE_S
        async with aclosing(replay(context, endpoint, start, self._replay_timeout_s)) as messages:
            async for number, payload in messages:
                again = feed.replayed(number, payload, self._clock.unix_s())
                if again is not None:
                    return again
                if self._clock.monotonic_s() >= deadline_s:
                    await asyncio.sleep(0)
                    deadline_s = self._clock.monotonic_s() + SLICE_S
        return feed.replay_ended(self._clock.unix_s())
