"""Where a body ends: by length, by chunks, or with the connection.

A decoder is fed bytes and returns the payload among them. Once ``complete``, ``surplus`` holds what came after the
end. A fault is a :class:`FramingFault`, which readers turn into the fault of whoever sent the bytes.
"""

import re
from typing import Protocol

CHUNK_HEAD = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t \x21-\x7e\x80-\xff]{0,240})?\r\n")
MAX_CHUNK_HEAD = 256
MAX_TRAILER = 8192
_FRAMING = (b"content-length:", b"transfer-encoding:")
_TRAILER_LINE = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t \x21-\x7e\x80-\xff]*+)?\r\n")


class FramingFault(Exception):
    """Bytes that break the framing; the message says how."""


class BodyDecoder(Protocol):
    """What the three decoders have in common."""

    complete: bool
    surplus: bytes

    def feed(self, data: bytes) -> bytes:
        """Return the payload bytes among ``data``."""
        ...

    def end(self) -> None:
        """The connection has ended.

        :raises FramingFault: when the body had not.
        """
        ...


class LengthDecoder:
    """A body of a declared length (> 0)."""

    __slots__ = ("complete", "remaining", "surplus")

    def __init__(self, length: int) -> None:
        self.remaining = length
        self.complete = False
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        """Return the payload bytes among ``data``."""
        size = len(data)
        if size < self.remaining:
            self.remaining -= size
            return data
        if size > self.remaining:
            self.surplus = data[self.remaining :]
            data = data[: self.remaining]
        self.remaining = 0
        self.complete = True
        return data

    def end(self) -> None:
        """Refuse an end before the declared length."""
        if not self.complete:
            raise FramingFault(f"the body ended {self.remaining} bytes early")


class CloseDecoder:
    """A body that ends with the connection."""

    __slots__ = ("complete", "surplus")

    def __init__(self) -> None:
        self.complete = False
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        """Return ``data``: everything is payload."""
        return data

    def end(self) -> None:
        """The end of the connection is the end of the body."""
        self.complete = True


class ChunkedDecoder:
    """A chunked body. Extensions and trailers are read and dropped; both are bounded."""

    __slots__ = ("_buffer", "_in_trailer", "_left", "_scanned", "_trailer_left", "complete", "surplus")

    def __init__(self) -> None:
        self._buffer = b""
        """An incomplete chunk head, line end or line of the trailer."""
        self._left = 0
        """Payload bytes of the current chunk still to come; -1 when its closing CRLF is due."""
        self._in_trailer = False
        self._trailer_left = MAX_TRAILER
        self._scanned = 0
        """Bytes at the start of the trailer's incomplete line in which no end was found."""
        self.complete = False
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        """Return the payload bytes among ``data``."""
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        pieces: list[bytes] = []
        position = self._take(data, 0, pieces)
        if position < len(data) and not self.complete:
            self._buffer = data[position:]
        if len(pieces) == 1:
            return pieces[0]
        return b"".join(pieces)

    def end(self) -> None:
        """Refuse an end before the last chunk."""
        if not self.complete:
            raise FramingFault("the body ended before its last chunk")

    def _take(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        """Consume whole elements from ``position`` on; return where the first incomplete one starts."""
        size = len(data)
        while position < size:
            if self._in_trailer:
                return self._take_trailer(data, position)
            left = self._left
            if left > 0:
                end = position + left
                if end > size:
                    pieces.append(data[position:])
                    self._left = end - size
                    return size
                pieces.append(data[position:end])
                position = end
                self._left = left = -1
            if left < 0:
                if size - position < 2:
                    if data[position:] not in (b"", b"\r"):
                        raise FramingFault("a chunk is longer than its size says")
                    return position
                if data[position : position + 2] != b"\r\n":
                    raise FramingFault("a chunk is longer than its size says")
                position += 2
                self._left = 0
                continue
            head = CHUNK_HEAD.match(data, position)
            if head is None:
                _check_partial_head(data, position)
                return position
            position = head.end()
            self._left = int(head[1], 16)
            self._in_trailer = self._left == 0
        return position

    def _take_trailer(self, data: bytes, position: int) -> int:
        """Consume whole lines, each looked at once; the empty one is the last."""
        while (end := data.find(b"\n", position + self._scanned) + 1) > 0:
            self._trailer_left -= end - position
            self._scanned = 0
            if self._trailer_left < 0:
                break
            if _TRAILER_LINE.fullmatch(data, position, end) is None:
                raise FramingFault("a malformed trailer")
            if data[position:end].lower().startswith(_FRAMING):
                raise FramingFault("a trailer that tells of another framing")
            if end - position == 2:
                self.surplus = data[end:]
                self.complete = True
                return len(data)
            position = end
        self._scanned = len(data) - position
        if self._scanned >= self._trailer_left:
            raise FramingFault("a trailer that is too long")
        return position


def _check_partial_head(data: bytes, position: int) -> None:
    rest = data[position : position + MAX_CHUNK_HEAD]
    if b"\n" in rest or len(rest) == MAX_CHUNK_HEAD or not _CHUNK_HEAD_START.fullmatch(rest):
        raise FramingFault("a malformed chunk size")


_CHUNK_HEAD_START = re.compile(rb"[0-9A-Fa-f]{1,8}(?:;[\t \x21-\x7e\x80-\xff]*)?\r?")
