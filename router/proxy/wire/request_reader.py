"""Reads the requests of one client connection, one at a time, from bytes as they arrive.

Life-cycle of a reader, as a table::

    state   input             next    effect
    HEAD    a whole head      BODY    ``head`` is set (or COMPLETE when there is no body)
    BODY    the body's end    COMPLETE
    COMPLETE  ``next()``      HEAD    bytes that came after the end are kept for the next request

Bytes past the end of the current request (pipelining) are held back, up to a limit.
"""

from enum import Enum
from typing import Final

from router.proxy.wire.body import BodyDecoder, ChunkedDecoder, FramingFault, LengthDecoder
from router.proxy.wire.faults import RequestFault
from router.proxy.wire.grammar import REQUEST_HEAD, has_loose_line_end
from router.proxy.wire.head import RequestHead, read_request_head
from router.proxy.wire.repeated_head import RepeatedHead, remember


class ReadState(Enum):
    """Where a reader is in the current request."""

    HEAD = "head"
    BODY = "body"
    COMPLETE = "complete"


_HEAD: Final = ReadState.HEAD
_BODY: Final = ReadState.BODY
_COMPLETE: Final = ReadState.COMPLETE


class RequestReader:
    """The requests of one connection; ``head`` and ``body()`` belong to the current one."""

    __slots__ = ("_decoder", "_max_body", "_max_head", "_pending", "_repeated", "_scanned", "_whole", "head", "state")

    def __init__(self, max_head_bytes: int, max_body_bytes: int) -> None:
        self._max_head = max_head_bytes
        self._max_body = max_body_bytes
        self._pending = b""
        self.state = _HEAD
        self.head: RequestHead | None = None
        self._repeated: RepeatedHead | None = None
        self._decoder: BodyDecoder | None = None
        self._whole: bytes | bytearray = b""
        self._scanned = 0
        """Bytes at the start of ``_pending`` in which no end of a head was found."""

    @property
    def pending_bytes(self) -> int:
        """Bytes held back: an incomplete head, or what came after the current request."""
        return len(self._pending)

    @property
    def held_bytes(self) -> int:
        """Everything that is held, of heads and of bodies."""
        return len(self._whole) + len(self._pending)

    @property
    def body_bytes(self) -> int:
        """Body bytes of the current request that are held."""
        return len(self._whole)

    def feed(self, data: bytes) -> None:
        """Take in bytes; afterwards look at ``state``.

        :raises RequestFault: for bytes that cannot be read safely; the connection must not be read any further.
        """
        if self.state is _BODY:
            self._feed_body(data)
        elif self.state is _HEAD:
            self._feed_head(self._pending + data if self._pending else data)
        else:
            self._pending += data

    def body(self) -> bytes:
        """Return the whole body of a complete request."""
        if isinstance(self._whole, bytearray):
            self._whole = bytes(self._whole)
        return self._whole

    def next(self) -> None:
        """Go on with the next request, reading first what was held back.

        :raises RequestFault: as :meth:`feed`.
        """
        pending, self._pending = self._pending, b""
        self.state = _HEAD
        self.head = None
        self._decoder = None
        self._whole = b""
        self._scanned = 0
        if pending:
            self._feed_head(pending)

    def forget(self) -> None:
        """Forget everything: nothing more is read of this connection."""
        self._pending = b""
        self._whole = b""

    def discard_pending(self) -> None:
        """Forget what was held back: the connection closes after the current answer."""
        self._pending = b""

    def _feed_head(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n", self._scanned, self._max_head) + 4
        if end < 4:
            self._hold_incomplete(data)
            return
        self._pending = b""
        self._scanned = 0
        head = None if self._repeated is None else self._repeated.read(data, end)
        if head is None:
            head = self._read_head(data[:end])
        self.head = head
        if head.content_length is None:
            self._decoder = ChunkedDecoder()
        elif head.content_length == 0:
            self._pending = data[end:]
            self.state = _COMPLETE
            return
        elif head.content_length > self._max_body:
            raise self._too_large()
        elif head.content_length == len(data) - end:  # the usual case: all of it came at once
            self._whole = data[end:]
            self.state = _COMPLETE
            return
        else:
            self._decoder = LengthDecoder(head.content_length)
        self.state = _BODY
        if end < len(data):
            self._feed_body(data[end:])

    def _read_head(self, data: bytes) -> RequestHead:
        if REQUEST_HEAD.fullmatch(data) is None:
            raise RequestFault("malformed_request", "the request head is not valid HTTP/1.1")
        head = read_request_head(data)
        self._repeated = remember(data, head)
        return head

    def _hold_incomplete(self, data: bytes) -> None:
        if has_loose_line_end(data, self._scanned, self._max_head) or not (data[:1].isalpha()):
            raise RequestFault("malformed_request", "the request head is not valid HTTP/1.1")
        if len(data) >= self._max_head:
            raise RequestFault("head_too_large", f"the request head exceeds {self._max_head} bytes", 431)
        self._pending = data
        self._scanned = max(0, len(data) - 3)

    def _feed_body(self, data: bytes) -> None:
        decoder = self._decoder
        if decoder is None:
            raise RequestFault("malformed_request", "a body where none was announced")
        try:
            payload = decoder.feed(data)
        except FramingFault as fault:
            raise RequestFault("malformed_body", str(fault)) from fault
        if len(self._whole) + len(payload) > self._max_body:
            raise self._too_large()
        if not self._whole:
            self._whole = payload
        elif payload:
            if isinstance(self._whole, bytes):
                self._whole = bytearray(self._whole)
            self._whole += payload
        if decoder.complete:
            self._pending = decoder.surplus
            self.state = _COMPLETE

    def _too_large(self) -> RequestFault:
        return RequestFault("body_too_large", f"the request body exceeds {self._max_body} bytes", 413)
