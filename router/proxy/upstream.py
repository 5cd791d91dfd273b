"""One connection to an engine: a request goes out, an answer comes in, and it may be used again.

Life-cycle, as a table::

    state   event                      next    effect
    IDLE    begin()                    BUSY    the request is written
    IDLE    bytes, or the engine ends  CLOSED  an idle connection has nothing to say: dropped
    BUSY    answer complete            IDLE    back to its pool (CLOSED when the engine does not keep it alive)
    BUSY    malformed, short, reset    CLOSED  the listener is told, once
    BUSY    abort()                    CLOSED  the listener is not told
"""

import asyncio
from typing import Final, Protocol

from router.proxy.failure import Failure, FailureKind
from router.proxy.sockets import tune
from router.proxy.wire.answer_heads import AnswerHeads
from router.proxy.wire.answer_reader import AnswerReader
from router.proxy.wire.faults import AnswerFault
from router.proxy.wire.head import AnswerHead

JOIN_BELOW_BYTES: Final = 64 * 1024
"""A head and a body are joined for one write when the body is smaller than this."""


class AnswerListener(Protocol):
    """Who a connection tells about the answer."""

    def on_answer(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        """Take in the next payload bytes; the first call may come with none, as soon as the head is known."""
        ...

    def on_failure(self, failure: Failure, *, unanswered: bool) -> None:
        """The answer will not be completed. ``unanswered``: not one byte of it had arrived."""
        ...


class ConnectionOwner(Protocol):
    """Who a connection goes back to."""

    def on_idle(self, connection: "UpstreamConnection") -> None:
        """The connection can be used again."""
        ...

    def on_closed(self, connection: "UpstreamConnection") -> None:
        """The connection is gone."""
        ...


class UpstreamConnection(asyncio.Protocol):
    """See the module's table; ``idle_since_s`` is set by the owner."""

    def __init__(self, owner: ConnectionOwner, max_head_bytes: int, heads: AnswerHeads) -> None:
        self._owner = owner
        self._max_head = max_head_bytes
        self._heads = heads
        self._transport: asyncio.Transport | None = None
        self._listener: AnswerListener | None = None
        self._reader: AnswerReader | None = None
        self.uses = 0
        self.idle_since_s = 0.0
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport (called by asyncio)."""
        tune(transport)
        self._transport = transport  # type: ignore[assignment]

    @property
    def usable(self) -> bool:
        """Whether a request could be sent."""
        return not self.closed and self._transport is not None and not self._transport.is_closing()

    def begin(self, listener: AnswerListener, head: bytes, body: bytes) -> None:
        """Send a request and tell ``listener`` about its answer."""
        transport = self._transport
        if transport is None or self._listener is not None:
            raise RuntimeError("a connection carries one request at a time")
        self._listener = listener
        self._reader = AnswerReader(self._max_head, self._heads)
        self.uses += 1
        if len(body) < JOIN_BELOW_BYTES:
            transport.write(head + body)
        else:
            transport.writelines([head, body])

    def data_received(self, data: bytes) -> None:
        """Read on (called by asyncio)."""
        reader, listener = self._reader, self._listener
        if reader is None or listener is None:
            self.abort()  # bytes that nobody asked for
            return
        try:
            payload = reader.feed(data)
        except AnswerFault as fault:
            self._fail(FailureKind.MALFORMED, f"{fault.code}: {fault.message}")
            return
        head = reader.head
        if head is None:
            return
        if reader.complete:
            self._release(head.keep_alive)
        listener.on_answer(head, payload, reader.complete)

    def eof_received(self) -> bool:
        """The engine will send no more (called by asyncio)."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone (called by asyncio)."""
        was_closed, self.closed = self.closed, True
        reader, listener = self._reader, self._listener
        if reader is not None and listener is not None and not was_closed:
            self._finish_at_end(reader, listener, exc)
        self._listener = self._reader = None
        self._owner.on_closed(self)

    def abort(self) -> None:
        """Close at once; the engine sees its client go away. The listener is not told."""
        self._listener = self._reader = None
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Read no further: the client is slower than the engine."""
        if self._transport is not None and self.usable:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._transport is not None and self.usable:
            self._transport.resume_reading()

    def _release(self, keep_alive: bool) -> None:
        self._listener = self._reader = None
        transport = self._transport
        if keep_alive and transport is not None and not transport.get_write_buffer_size():
            self._owner.on_idle(self)
            return
        self.closed = True  # also when it answered before it had read the request: the rest of that is still on its way
        if transport is not None:
            transport.close()

    def _finish_at_end(self, reader: AnswerReader, listener: AnswerListener, exc: Exception | None) -> None:
        if exc is not None:
            listener.on_failure(Failure(FailureKind.RESET, str(exc)), unanswered=not reader.began)
            return
        try:
            reader.end()
        except AnswerFault as fault:
            listener.on_failure(
                Failure(FailureKind.RESET, f"{fault.code}: {fault.message}"), unanswered=not reader.began
            )
            return
        if reader.head is not None:
            listener.on_answer(reader.head, b"", True)

    def _fail(self, kind: FailureKind, detail: str) -> None:
        listener = self._listener
        self.abort()
        if listener is not None:
            listener.on_failure(Failure(kind, detail), unanswered=False)
