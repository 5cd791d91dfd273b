"""Server-sent events, looked at and never decoded: error events, comments, and the event that ends a broken stream."""

import re
from typing import Final

from router.proxy.errors import ProxyError, error_body

_ERROR_EVENT: Final = re.compile(
    rb'(?:^|\n)data: ?\{[ \t]*+(?:"type"[ \t]*+:[ \t]*+"error"[ \t]*+,[ \t]*+)?"error"[ \t]*+:[ \t]*+(?!null)([^\r\n]*)'
)
_ERROR_MARK: Final = b'"error"'
_MAX_OPEN: Final = 2048
_LINE_END: Final = ord(b"\n")
_CODE = re.compile(rb'"code"\s*:\s*"?(\d{3})\b')
_COMMENTS = re.compile(rb"(?:\s*:[^\n]*(?:\n|$))*\s*")


class ErrorWatch:
    """Looks for error events in a stream that arrives in pieces, cut anywhere."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = b""
        """The start of the line that the last piece left unfinished."""

    def see(self, piece: bytes) -> int | None:
        """Return the code of an error event that ends in this piece (500 where it has none), or None."""
        if not piece:
            return None
        if self._open:
            piece = self._open + piece
            self._open = b""
        if piece[-1] != _LINE_END:
            line = piece.rfind(b"\n") + 1
            self._open = piece[line : line + _MAX_OPEN]
            piece = piece[:line]
        if piece.find(_ERROR_MARK) < 0:  # "in" tries the mark as a number first, and pays for an exception
            return None
        match = _ERROR_EVENT.search(piece)
        if match is None:
            return None
        code = _CODE.search(match[1])
        return int(code[1]) if code is not None else 500


def only_comments(piece: bytes) -> bool:
    """Tell whether a piece holds nothing but keep-alive comments and blank lines."""
    return piece[:1] in (b":", b"\n", b"\r") and _COMMENTS.fullmatch(piece) is not None


def closing_event(error: ProxyError, last_bytes: bytes, named: bool) -> bytes:
    """Return the event that tells of a failure in mid-stream; an event that was cut short is ended first.

    :param named: the dialect of Anthropic's messages, in which events carry their name and type.
    """
    gap = b"" if last_bytes.endswith((b"\n\n", b"\r\n\r\n")) else b"\n" if last_bytes.endswith(b"\n") else b"\n\n"
    if not named:
        return b"%bdata: %b\n\n" % (gap, error_body(error))
    return b"%bevent: error\ndata: %b\n\n" % (gap, error_body(error, anthropic=True))
