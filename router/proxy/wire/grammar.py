"""The grammar of a message head (RFC 9112, narrowed): what llhttp is lenient about is refused here, before it reads.

Narrower than the RFC on purpose: no obs-fold, no bare LF or CR, no space before a colon, origin-form targets only.
"""

import re
from collections.abc import Mapping
from typing import Final

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_FIELD = _TOKEN + rb"++:[\t \x21-\x7e\x80-\xff]*+\r\n"
REQUEST_HEAD: Final = re.compile(rb"[A-Z]{1,16} /[\x21-\x7e]*+ HTTP/1\.[01]\r\n(?:" + _FIELD + rb")*+\r\n")
ANSWER_HEAD: Final = re.compile(
    rb"HTTP/1\.[01] [1-9][0-9]{2}(?: [\t \x21-\x7e\x80-\xff]*+)?+\r\n(?:" + _FIELD + rb")*+\r\n"
)
TOKEN: Final = re.compile(_TOKEN + rb"+")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_HOST: Final = re.compile(rb"[!$%&'()*+,\-.:;=\[\]_~0-9A-Za-z]*")

Fields = Mapping[bytes, bytes]
"""Header values by lower-case name; of repeated headers the last."""


def parse_length(value: bytes) -> int | None:
    """Return a Content-Length, or None where the value is anything but 1 to 15 digits."""
    return int(value) if _LENGTH.fullmatch(value) else None


def has_loose_line_end(data: bytes, start: int, end: int) -> bool:
    """Tell whether there is a line feed without its carriage return before ``end``, or the other way round.

    Before ``start`` there is none, and a carriage return at the end may still get its line feed. Counted, for a search
    that has to try two forms at every byte takes twenty times as long.
    """
    if start and data.startswith(b"\n", start):
        start += 1  # its carriage return stands before it
    feeds = data.count(b"\n", start, end)
    returns = data.count(b"\r", start, end) - data.endswith(b"\r", start, end)
    return feeds != returns or (feeds > 0 and data.count(b"\r\n", start, end) != feeds)


def valid_host(value: bytes) -> bool:
    """Tell whether a Host value is made of the characters that a host and port may have."""
    return _HOST.fullmatch(value) is not None


def tokens_of(value: bytes) -> set[bytes]:
    """Split a comma-separated list such as Connection's into lower-case members."""
    return {part.strip().lower() for part in value.split(b",")} - {b""}
