"""The stream of snapshots in Redis: one script puts a snapshot in and says whether it was new, one command reads on.

Putting in is a claim: of two web processes that a snapshot was delivered to (because the first answered too late), one
is told that it was new. Entries stay for a minute, so that a process that starts, or was cut off, is filled in with
what the live page shows. Ages are by the clock of Redis alone.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from router.snapshot import Snapshot

BLOCK_S = 1.0
"""How long a read waits for news: so often, at least, is it known that Redis still answers."""
ANSWER_S = 0.5
"""How long Redis may take for anything else. A snapshot waits for it, and its worker for an answer to that."""
_AT_ONCE = 16
_FAST = 1
_FIRST = b"0-0"

_OFFER = """
local held = redis.call('GET', KEYS[1])
if held and held >= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 600)
local oldest = string.format('%d', (redis.call('TIME')[1] - 60) * 1000)
redis.call('XADD', KEYS[2], 'MINID', '~', oldest, '*', 'o', ARGV[2], 'b', ARGV[3])
redis.call('EXPIRE', KEYS[2], 600)
return 1
"""


class Entry(msgspec.Struct, frozen=True):
    """One snapshot in the stream."""

    origin: bytes
    """Identity of the web process that it was delivered to."""
    packed: bytes
    age_s: float

    def body(self) -> bytes:
        """Return the snapshot as its worker sent it.

        :raises zlib.error: when it is not what a web process puts in.
        """
        return zlib.decompress(self.packed)


class Stream:
    """Belongs to one event loop. Every method raises :class:`redis.RedisError` or OSError when Redis does not do it."""

    def __init__(self, url: str, namespace: str) -> None:
        self._key = f"{namespace}:snapshots"
        self._namespace = namespace
        self._reader = _client(url, BLOCK_S + ANSWER_S)
        self._writer = _client(url, ANSWER_S)
        self._offer = self._writer.register_script(_OFFER)
        self._last = _FIRST

    async def offer(self, snapshot: Snapshot, body: bytes, origin: bytes) -> bool:
        """Put a snapshot in; return False when it was there already, or a newer one of its worker."""
        order = f"{snapshot.started_unix_s:020.6f} {snapshot.seq:015}"
        keys = [f"{self._namespace}:newest:{snapshot.worker}", self._key]
        return bool(await self._offer(keys=keys, args=[order, origin, zlib.compress(body, _FAST)]))

    async def rejoin(self) -> None:
        """Make sure that there can be something after what was read last: Redis may have been emptied meanwhile."""
        newest: Any = await self._reader.xrevrange(self._key, count=1)
        if not newest or _moment(newest[0][0]) < _moment(self._last):
            self._last = _FIRST

    async def read(self) -> tuple[Sequence[Entry], bool]:
        """Return what was put in since the last call, oldest first, and whether that is all; wait for a moment for it.

        Of a long past only some entries are returned at a time.
        """
        pipe = self._reader.pipeline(transaction=False)
        pipe.xread({self._key: self._last}, count=_AT_ONCE, block=int(BLOCK_S * 1000))
        pipe.time()
        found, (seconds, microseconds) = await pipe.execute()
        entries: list[tuple[bytes, dict[bytes, bytes]]] = found[0][1] if found else []
        if entries:
            self._last = entries[-1][0]
        now_s = seconds + microseconds / 1e6
        read = [Entry(fields[b"o"], fields[b"b"], max(0.0, now_s - _moment(at)[0] / 1000)) for at, fields in entries]
        return read, len(entries) < _AT_ONCE

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.aclose()
        await self._writer.aclose()


def _client(url: str, answer_s: float) -> Redis:
    """Return a client that tries once: a claim that is tried again would find itself."""
    once = Retry(NoBackoff(), 0)
    return Redis.from_url(url, protocol=2, socket_timeout=answer_s, socket_connect_timeout=ANSWER_S, retry=once)


def _moment(identity: bytes) -> tuple[int, int]:
    milliseconds, _, number = identity.partition(b"-")
    return int(milliseconds), int(number)
