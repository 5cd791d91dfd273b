"""A booking: what one request holds at one instance, released exactly once.

Life-cycle, as a table::

    state      event          next       releases
    BOOKED     first byte     STREAMING  waiting, queued prefill
    BOOKED     end            RELEASED   requests, waiting, queued prefill, KV
    STREAMING  end            RELEASED   requests, KV

"End" is every way a request can end: the last byte, an error, a client that went away, a retry elsewhere. Any other
move is a fault of this program and raises.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from router.state.errors import BookingFault
from router.state.instance import Instance


class BookingState(Enum):
    """Where a booking is in its life."""

    BOOKED = "booked"
    STREAMING = "streaming"
    RELEASED = "released"


_BOOKED: Final = BookingState.BOOKED
_STREAMING: Final = BookingState.STREAMING
_RELEASED: Final = BookingState.RELEASED


class Booking:
    """One request's share of an instance's counters."""

    __slots__ = ("_booked_s", "_on_ttft", "_publish", "answered_s", "instance", "kv_tokens", "new_tokens", "state")

    def __init__(
        self,
        instance: Instance,
        new_tokens: int,
        kv_tokens: int,
        publish: Callable[[Instance], None],
        *,
        now_s: float = 0.0,
        on_ttft: Callable[[float], None] | None = None,
    ) -> None:
        self.instance = instance
        self.new_tokens = new_tokens
        self.kv_tokens = kv_tokens
        self.state = _BOOKED
        self.answered_s: float | None = None
        """When the first token came, where it was seen to come."""
        self._publish = publish
        self._booked_s = now_s
        self._on_ttft = on_ttft
        instance.move(requests=1, waiting=1, queued_prefill_tokens=new_tokens, kv_tokens=kv_tokens)
        publish(instance)

    def first_byte(self, first_token_s: float | None = None) -> None:
        """Release the queued prefill: the engine has begun to answer.

        :param first_token_s: when, on the clock of the booking, where the byte was the first token of a stream; an
            answer that comes whole says nothing about first tokens.
        :raises BookingFault: when the booking is not in state BOOKED.
        """
        if self.state is not _BOOKED:
            raise BookingFault(f"first byte in state {self.state.value}")
        self.state = _STREAMING
        self.answered_s = first_token_s
        self.instance.move(waiting=-1, queued_prefill_tokens=-self.new_tokens)
        self._publish(self.instance)
        if self._on_ttft is not None and first_token_s is not None:
            self._on_ttft(first_token_s - self._booked_s)

    def end(self) -> None:
        """Release everything that is still held.

        :raises BookingFault: when the booking was released before.
        """
        if self.state is _RELEASED:
            raise BookingFault("released twice")
        if self.state is _BOOKED:
            self.instance.move(
                requests=-1, waiting=-1, queued_prefill_tokens=-self.new_tokens, kv_tokens=-self.kv_tokens
            )
        else:
            self.instance.move(requests=-1, kv_tokens=-self.kv_tokens)
        self.state = _RELEASED
        self._publish(self.instance)
