"""SGLang's pushed load (``--load-publish-endpoint``): exact queued prefill, and a measured prefill rate.

Frames are ``[b"load", number, msgpack]``, the payload an array ``["LoadStat", ...]``. Only the newest matters: nothing
is replayed, and what is old is for the reader to notice by its age.
"""

from typing import Annotated

import msgspec

from router.kvevents.errors import DecodeError
from router.unreadable import UNREADABLE

NUMBER_BYTES = 8
_Count = Annotated[int, msgspec.Meta(ge=0)]


class LoadStat(msgspec.Struct, frozen=True, array_like=True, tag="LoadStat"):
    """The load of one data-parallel rank. Trailing fields are None where an older engine does not send them.

    ``waiting_uncached_tokens`` are prompt tokens of waiting requests that must be prefilled: Q, exactly. The two
    totals only grow: tokens prefilled, and microseconds spent on them.
    """

    running: _Count
    waiting: _Count
    tokens: _Count
    max_tokens: _Count
    rank: _Count = 0
    waiting_uncached_tokens: _Count | None = None
    total_tokens: _Count | None = None
    max_running: _Count | None = None
    prefill_uncached_total: _Count | None = None
    prefill_busy_us_total: _Count | None = None

    @property
    def kv_use(self) -> float | None:
        """Share of KV tokens in use, 0..1; None where the engine does not know its capacity."""
        return min(1.0, self.tokens / self.max_tokens) if self.max_tokens else None


_decoder = msgspec.msgpack.Decoder(LoadStat)


def decode_load(frames: list[bytes]) -> LoadStat:
    """Decode one pushed message.

    :raises DecodeError: when it is none.
    """
    if len(frames) != 3 or len(frames[1]) != NUMBER_BYTES:
        raise DecodeError(f"{len(frames)} frames are no load message")
    try:
        return _decoder.decode(frames[2])
    except UNREADABLE as error:
        raise DecodeError(f"no load: {error}") from error


def prefill_rate(before: LoadStat, after: LoadStat) -> float | None:
    """Return the tokens prefilled per second of prefilling between two messages of one rank.

    None where the engine does not tell, prefilled nothing in between, or restarted (totals that shrink).
    """
    totals = (
        before.prefill_uncached_total,
        before.prefill_busy_us_total,
        after.prefill_uncached_total,
        after.prefill_busy_us_total,
    )
    tokens_before, busy_before, tokens_after, busy_after = totals
    if tokens_before is None or busy_before is None or tokens_after is None or busy_after is None:
        return None
    tokens, busy_us = tokens_after - tokens_before, busy_after - busy_before
    if tokens <= 0 or busy_us <= 0:
        return None
    return tokens / busy_us * 1e6
