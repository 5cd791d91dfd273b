"""Reads one answer of an engine from bytes as they arrive."""

from router.proxy.wire.answer_heads import AnswerHeads
from router.proxy.wire.body import BodyDecoder, ChunkedDecoder, CloseDecoder, FramingFault, LengthDecoder
from router.proxy.wire.faults import AnswerFault
from router.proxy.wire.grammar import has_loose_line_end
from router.proxy.wire.head import AnswerHead

_MAX_INTERIM = 8


class AnswerReader:
    """One answer: ``head`` once it is known, payload from :meth:`feed`, ``complete`` at its end.

    Interim answers (1xx) are dropped. Bytes after the end are a fault: nothing was asked for them.
    """

    __slots__ = ("_buffer", "_decoder", "_heads", "_interim", "_max_head", "_scanned", "complete", "head")

    def __init__(self, max_head_bytes: int, heads: AnswerHeads) -> None:
        self._max_head = max_head_bytes
        self._heads = heads
        self._buffer = b""
        self._scanned = 0
        """Bytes at the start of ``_buffer`` in which no end of a head was found."""
        self._interim = 0
        self._decoder: BodyDecoder | None = None
        self.head: AnswerHead | None = None
        self.complete = False

    @property
    def began(self) -> bool:
        """Whether any byte of the answer has arrived."""
        return self.head is not None or bool(self._buffer) or self._interim > 0

    def feed(self, data: bytes) -> bytes:
        """Take in bytes and return the payload among them.

        :raises AnswerFault: for bytes that cannot be read safely.
        """
        decoder = self._decoder
        if decoder is None:
            data = self._feed_head(self._buffer + data if self._buffer else data)
            decoder = self._decoder
            if decoder is None or not data:
                return b""
        try:
            payload = decoder.feed(data)
        except FramingFault as fault:
            raise AnswerFault("malformed_body", str(fault)) from fault
        if decoder.complete:
            if decoder.surplus:
                raise AnswerFault("surplus_bytes", "the answer is longer than it says")
            self.complete = True
        return payload

    def end(self) -> None:
        """The engine closed the connection.

        :raises AnswerFault: when the answer was not complete.
        """
        if self._decoder is None:
            raise AnswerFault("no_answer", "the connection closed before an answer")
        try:
            self._decoder.end()
        except FramingFault as fault:
            raise AnswerFault("short_answer", str(fault)) from fault
        self.complete = True

    def _feed_head(self, data: bytes) -> bytes:
        """Read the head at the start of ``data``; return what follows it."""
        while True:
            end = data.find(b"\r\n\r\n", self._scanned, self._max_head) + 4
            if end < 4:
                self._hold_incomplete(data)
                return b""
            head = self._heads.read(data[:end])
            data = data[end:]
            self._buffer = b""
            self._scanned = 0
            if head.status >= 200:
                break
            self._interim += 1
            if head.status == 101 or self._interim > _MAX_INTERIM:
                raise AnswerFault("interim_answers", "interim answers that nobody asked for")
            if not data:
                return b""
        self.head = head
        self._decoder = self._decoder_of(head)
        if self._decoder.complete and data:
            raise AnswerFault("surplus_bytes", "the answer is longer than it says")
        return data

    def _decoder_of(self, head: AnswerHead) -> BodyDecoder:
        if head.chunked:
            return ChunkedDecoder()
        if head.content_length is None:
            return CloseDecoder()
        decoder = LengthDecoder(head.content_length)
        if head.content_length == 0:
            decoder.complete = self.complete = True
        return decoder

    def _hold_incomplete(self, data: bytes) -> None:
        if has_loose_line_end(data, self._scanned, self._max_head) or not b"HTTP/1.".startswith(data[:7]):
            raise AnswerFault("malformed_answer", "the answer head is not valid HTTP/1.1")
        if len(data) >= self._max_head:
            raise AnswerFault("head_too_large", f"the answer head exceeds {self._max_head} bytes")
        self._buffer = data
        self._scanned = max(0, len(data) - 3)
