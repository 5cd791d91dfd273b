"""The head that a connection sent last: clients repeat theirs, and only the length of the body differs.

A head that is byte for byte the last one, but for the digits of its Content-Length, means the same but for that length.
"""

import re
from typing import Final

from router.proxy.wire.head import RequestHead

MOST_BYTES: Final = 4096
MOST_DIGITS: Final = 15
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)


class RepeatedHead:
    """What stands before and behind the digits, and what it means."""

    __slots__ = ("_after", "_before", "_head")

    def __init__(self, data: bytes, length: re.Match[bytes], head: RequestHead) -> None:
        self._before = data[: length.start(1)]
        self._after = data[length.end(1) :]
        self._head = head

    def read(self, data: bytes, end: int) -> RequestHead | None:
        """Return what the head that ends at ``end`` means, or None when it is another one."""
        stop = end - len(self._after)
        start = len(self._before)
        if not 0 < stop - start <= MOST_DIGITS or not data.startswith(self._before):
            return None
        digits = data[start:stop]
        if not digits.isdigit() or not data.startswith(self._after, stop):
            return None
        return self._head.again(int(digits))


def remember(data: bytes, head: RequestHead) -> RepeatedHead | None:
    """Return what to recognise a head by when it comes again; None for one without a length, or a large one."""
    if head.content_length is None or len(data) > MOST_BYTES:
        return None
    length = _LENGTH.search(data)
    return None if length is None else RepeatedHead(data, length, head)
