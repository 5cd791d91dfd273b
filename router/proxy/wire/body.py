"""Where a body ends: by length, by chunks, or with the connection.

A decoder is fed bytes and returns the payload among them. Once ``complete``, ``surplus`` holds what came after the
end. A fault is a :class:`FramingFault`, which readers turn into the fault of whoever sent the bytes.
"""

import re
from abc import ABC, abstractmethod
from typing import Final

CHUNK_HEAD: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t \x21-\x7e\x80-\xff]{0,240})?\r\n")
MAX_CHUNK_HEAD: Final = 256
MAX_TRAILER: Final = 8192
_MOST_DIGITS: Final = 8
_CR: Final = 0x0D
_LF: Final = 0x0A
_0: Final = 0x30
_9: Final = 0x39
_A: Final = 0x61
_F: Final = 0x66
_LOWER: Final = 0x20
"""The bit that makes a letter a small one."""
_FRAMING = (b"content-length:", b"transfer-encoding:")
_TRAILER_LINE: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t \x21-\x7e\x80-\xff]*+)?\r\n")


class FramingFault(Exception):
    """Bytes that break the framing; the message says how."""


class BodyDecoder(ABC):
    """What the three decoders have in common."""

    __slots__ = ("complete", "surplus")

    def __init__(self) -> None:
        self.complete = False
        self.surplus = b""

    @abstractmethod
    def feed(self, data: bytes) -> bytes:
        """Return the payload bytes among ``data``."""

    @abstractmethod
    def end(self) -> None:
        """The connection has ended.

        :raises FramingFault: when the body had not.
        """


class LengthDecoder(BodyDecoder):
    """A body of a declared length (> 0)."""

    __slots__ = ("remaining",)

    def __init__(self, length: int) -> None:
        super().__init__()
        self.remaining = length

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


class CloseDecoder(BodyDecoder):
    """A body that ends with the connection."""

    __slots__ = ()

    def feed(self, data: bytes) -> bytes:
        """Return ``data``: everything is payload."""
        return data

    def end(self) -> None:
        """The end of the connection is the end of the body."""
        self.complete = True


class ChunkedDecoder(BodyDecoder):
    """A chunked body. Extensions and trailers are read and dropped; both are bounded."""

    __slots__ = ("_buffer", "_in_trailer", "_left", "_scanned", "_trailer_left")

    def __init__(self) -> None:
        super().__init__()
        self._buffer = b""
        """An incomplete chunk head, line end or line of the trailer."""
        self._left = 0
        """Payload bytes of the current chunk still to come; -1 when its closing CRLF is due."""
        self._in_trailer = False
        self._trailer_left = MAX_TRAILER
        self._scanned = 0
        """Bytes at the start of the trailer's incomplete line in which no end was found."""

    def feed(self, data: bytes) -> bytes:
        """Return the payload bytes among ``data``."""
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        elif not self._left and not self._in_trailer:
            length, start = _plain_head(data, 0)
            end = len(data) - 2
            if 0 < length == end - start and data[end] == _CR and data[end + 1] == _LF:
                return data[start:end]  # the usual case: one whole chunk
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
            length, start = _plain_head(data, position)
            if not start:
                head = CHUNK_HEAD.match(data, position)
                if head is None:
                    _check_partial_head(data, position)
                    return position
                length, start = int(head[1], 16), head.end()
            position = start
            self._left = length
            self._in_trailer = length == 0
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


def _plain_head(data: bytes, position: int) -> tuple[int, int]:
    """Read a chunk head without an extension: the chunk's length, and where it begins (0: it is no such head)."""
    length = 0
    at = position
    last = min(len(data) - 2, position + _MOST_DIGITS)
    while at < last:
        digit = data[at]
        if _0 <= digit <= _9:
            length = length * 16 + digit - _0
        elif _A <= digit | _LOWER <= _F:
            length = length * 16 + (digit | _LOWER) - _A + 10
        else:
            break
        at += 1
    if at > position and data[at] == _CR and data[at + 1] == _LF:
        return length, at + 2
    return 0, 0


def _check_partial_head(data: bytes, position: int) -> None:
    rest = data[position : position + MAX_CHUNK_HEAD]
    if b"\n" in rest or len(rest) == MAX_CHUNK_HEAD or not _CHUNK_HEAD_START.fullmatch(rest):
        raise FramingFault("a malformed chunk size")


_CHUNK_HEAD_START = re.compile(rb"[0-9A-Fa-f]{1,8}(?:;[\t \x21-\x7e\x80-\xff]*)?\r?")
