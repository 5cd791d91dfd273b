"""Why an attempt at an engine failed, before it is known what the client will be told."""

from enum import Enum

import msgspec


class FailureKind(Enum):
    """The kinds of upstream failures; the value is the metric label."""

    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    EXHAUSTED = "exhausted"
    RESET = "reset"
    MALFORMED = "malformed"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    STALLED = "stalled"
    STATUS = "status"
    IN_STREAM = "in_stream"

    @property
    def is_timeout(self) -> bool:
        """Whether the engine was too slow rather than wrong."""
        return self in _TIMEOUTS

    @property
    def is_certain(self) -> bool:
        """Whether the engine never saw the request, nor would the next one: it uses up an instance, no attempt."""
        return self is FailureKind.CONNECT

    @property
    def is_our_own(self) -> bool:
        """Whether this machine had no descriptor, port or memory for a connection: nothing that an engine did."""
        return self is FailureKind.EXHAUSTED

    @property
    def draws_on_budget(self) -> bool:
        """Whether a retry needs the budget; a dead engine's requests are always placed anew."""
        return self not in _DEAD


_TIMEOUTS = frozenset({FailureKind.CONNECT_TIMEOUT, FailureKind.FIRST_BYTE_TIMEOUT, FailureKind.STALLED})
_DEAD = frozenset({FailureKind.CONNECT, FailureKind.RESET})
_DYING = frozenset({FailureKind.RESET, FailureKind.IN_STREAM})


class Failure(msgspec.Struct, frozen=True):
    """One failed attempt; ``detail`` is for people."""

    kind: FailureKind
    detail: str
    status: int = 0
    """Of an answer that was itself the failure."""

    @property
    def may_be_death(self) -> bool:
        """Whether an engine that dies fails a request like this.

        vLLM's server outlives its engine process for a moment, and tells of the death by a 500 or in the stream. Other
        statuses are not looked into: 503 is what an engine with too much to do says, again and again.
        """
        kind = self.kind
        return kind in _DYING or (kind is FailureKind.STATUS and self.status == 500)
