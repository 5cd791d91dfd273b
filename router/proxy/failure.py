"""Why an attempt at an engine failed, before it is known what the client will be told."""

from enum import Enum

import msgspec


class FailureKind(Enum):
    """The kinds of upstream failures; the value is the metric label."""

    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
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
    def draws_on_budget(self) -> bool:
        """Whether a retry needs the budget; a dead engine's requests are always placed anew."""
        return self not in _DEAD


_TIMEOUTS = frozenset({FailureKind.CONNECT_TIMEOUT, FailureKind.FIRST_BYTE_TIMEOUT, FailureKind.STALLED})
_DEAD = frozenset({FailureKind.CONNECT, FailureKind.RESET})


class Failure(msgspec.Struct, frozen=True):
    """One failed attempt; ``detail`` is for people."""

    kind: FailureKind
    detail: str
