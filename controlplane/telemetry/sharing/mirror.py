"""This process's part in sharing: what is delivered here goes out, what is delivered to others comes in.

Redis is never waited for long, and nothing depends on it that one process can do alone: while it is away, what is
delivered here is taken and counted here, the workers of other processes grow stale, and :attr:`Mirror.whole` says so to
whoever would otherwise take silence for absence.
"""

import asyncio
import logging
import zlib
from collections.abc import Callable

from redis import RedisError

from controlplane.telemetry.ranks import fold_ranks
from controlplane.telemetry.sharing.names import name_of
from controlplane.telemetry.sharing.stream import ANSWER_S, BLOCK_S, Entry, Stream
from router.ports import Clock
from router.snapshot import Snapshot, parse_snapshot
from router.unreadable import UNREADABLE

logger = logging.getLogger(__name__)
START_S = 3.0
"""How long a process may be filled in before it serves."""
WHOLE_FOR_S = BLOCK_S + 1.5
"""How long after the last answer to a read everything is held to be heard."""
RETRY_S = 1.0
_CANCEL_AGAIN_S = 0.2
"""The client for Redis may lose a cancellation that comes while it gives a connection back."""
Take = Callable[[Snapshot, str, float], None]
"""Takes a snapshot that another process heard: the snapshot, the name of the process, its age in seconds."""


class Mirror:
    """A :class:`controlplane.telemetry.sharing.sharing.Sharing` over Redis."""

    def __init__(self, make_stream: Callable[[], Stream], clock: Clock, take: Take, identity: bytes) -> None:
        self._make_stream = make_stream
        self._clock = clock
        self._take = take
        self._identity = identity
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._read_s = float("-inf")
        self._offer_again_s = float("-inf")
        self._faulty = False

    @property
    def whole(self) -> bool:
        """Whether the stream was read to its end a moment ago."""
        return self._clock.monotonic_s() - self._read_s <= WHOLE_FOR_S

    @property
    def hears_others(self) -> bool:
        """The same: there may be others at any time."""
        return self.whole

    async def start(self) -> None:
        """Follow the stream, and return once its last minute is read, or Redis has failed, or ``START_S`` are over."""
        self._stream = self._make_stream()
        self._tried.clear()
        self._task = asyncio.create_task(self._follow(self._stream), name="mirror")
        try:
            async with asyncio.timeout(START_S):
                await self._tried.wait()
        except TimeoutError:
            logger.warning("the last minute of the other web processes is still being read")

    async def stop(self) -> None:
        """Follow no longer, and close the connections."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_AGAIN_S)
        if self._stream is not None:
            await self._stream.close()
            self._stream = None
        self._read_s = float("-inf")

    async def offer(self, snapshot: Snapshot, body: bytes) -> bool:
        """Put a snapshot into the stream, unless Redis has just failed; what Redis cannot say is held to be new."""
        if self._stream is None or self._clock.monotonic_s() < self._offer_again_s:
            return True
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._stream.offer(snapshot, body, self._identity)
        except (RedisError, OSError) as error:  # OSError: also a timeout
            self._offer_again_s = self._clock.monotonic_s() + RETRY_S
            self._say_faulty(error)
            return True

    async def _follow(self, stream: Stream) -> None:
        while True:
            try:
                await stream.rejoin()
                while True:
                    await self._read_once(stream)
            except (RedisError, OSError) as error:
                self._say_faulty(error)
                self._tried.set()
                await asyncio.sleep(RETRY_S)
            except Exception:  # whatever it is, the web process serves on, and says that it does not hear the others
                logger.exception("the stream of snapshots could not be read")
                self._tried.set()
                await asyncio.sleep(RETRY_S)

    async def _read_once(self, stream: Stream) -> None:
        entries, is_all = await stream.read()
        for entry in entries:
            if entry.origin != self._identity:
                self._take_in(entry)
        await asyncio.sleep(0)  # a long past is read in pieces, and others have their turn
        if is_all:
            self._read_s = self._clock.monotonic_s()
            self._tried.set()
            if self._faulty:
                self._faulty = False
                logger.info("the other web processes are heard again")

    def _take_in(self, entry: Entry) -> None:
        try:
            snapshot = fold_ranks(parse_snapshot(entry.body()))
        except (zlib.error, *UNREADABLE) as error:
            logger.warning("a snapshot from %s cannot be read: %s", name_of(entry.origin), error)
            return
        self._take(snapshot, name_of(entry.origin), entry.age_s)

    def _say_faulty(self, error: Exception) -> None:
        if not self._faulty:
            self._faulty = True
            logger.warning("Redis does not answer, so other web processes are not heard: %s", error or type(error))
