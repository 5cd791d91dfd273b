"""Heads as values, and the framing that they announce."""

from typing import Final

import httptools

from router.proxy.wire.faults import AnswerFault, RequestFault
from router.proxy.wire.grammar import Fields, parse_length, tokens_of, valid_host

METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
MAX_FIELDS: Final = 100
MAX_LINES: Final = MAX_FIELDS + 2
"""With the first line and the empty one."""
EVENT_STREAM: Final = b"text/event-stream"
_KEEP_ALIVE: Final = b"keep-alive"
_CLOSE: Final = b"close"
_ZERO: Final = ord("0")


class Head:
    """The header fields of one message as httptools hands them over: in order, and by lower-case name."""

    __slots__ = ("fields", "raw_fields", "repeated")

    def __init__(self) -> None:
        self.raw_fields: list[tuple[bytes, bytes, bytes]] = []
        """(lower-case name, name, value) in the order of arrival."""
        self.fields: dict[bytes, bytes] = {}
        self.repeated: set[bytes] | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in one field (called by httptools)."""
        lower = name.lower()
        value = value.rstrip(b" \t")
        if lower in self.fields:
            if self.repeated is None:
                self.repeated = set()
            self.repeated.add(lower)
        self.fields[lower] = value
        self.raw_fields.append((lower, name, value))

    def is_repeated(self, name: bytes) -> bool:
        """Tell whether a field came more than once."""
        return self.repeated is not None and name in self.repeated

    @property
    def connection(self) -> set[bytes]:
        """The members of Connection, lower-case."""
        if self.is_repeated(b"connection"):
            return tokens_of(b",".join(value for lower, _, value in self.raw_fields if lower == b"connection"))
        value = self.fields.get(b"connection")
        if value is None:
            return set()
        return {_KEEP_ALIVE} if value == _KEEP_ALIVE else tokens_of(value)


class RequestHead(Head):
    """A request head; ``content_length`` is None for a chunked body and 0 for none."""

    __slots__ = ("content_length", "end_to_end", "expects_continue", "keep_alive", "method", "minor", "path", "target")

    method: bytes
    target: bytes
    minor: int
    content_length: int | None
    keep_alive: bool
    expects_continue: bool
    path: bytes
    """The target without its query."""
    end_to_end: bytes | None
    """The fields that an engine gets as they are; made when they are first needed."""

    def on_url(self, url: bytes) -> None:
        """Take in the request target (called by httptools)."""
        self.target = url

    @classmethod
    def of_post(cls, path: bytes) -> "RequestHead":
        """Return the head of a request of our own, with a JSON body."""
        head = cls()
        head.method, head.target, head.path, head.minor = b"POST", path, path, 1
        head.keep_alive, head.expects_continue, head.content_length = True, False, None
        head.end_to_end = None
        head.on_header(b"Content-Type", b"application/json")
        return head

    def again(self, content_length: int) -> "RequestHead":
        """Return the same head with another Content-Length."""
        head = RequestHead.__new__(RequestHead)
        head.raw_fields, head.fields, head.repeated = self.raw_fields, self.fields, self.repeated
        head.method, head.target, head.path, head.minor = self.method, self.target, self.path, self.minor
        head.keep_alive, head.expects_continue = self.keep_alive, self.expects_continue
        head.end_to_end = self.end_to_end
        head.content_length = content_length
        return head


class AnswerHead(Head):
    """An answer head; ``content_length`` is None when the body is chunked or ends with the connection."""

    __slots__ = ("chunked", "content_length", "end_to_end", "is_stream", "keep_alive", "minor", "reason", "status")

    status: int
    minor: int
    content_length: int | None
    chunked: bool
    keep_alive: bool
    is_stream: bool
    """Whether the body is a stream of server-sent events."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = b""
        self.end_to_end: bytes | None = None
        """Status line and end-to-end fields as clients get them; made when they are first needed."""

    def on_status(self, reason: bytes) -> None:
        """Take in the reason phrase (called by httptools)."""
        self.reason = reason


def read_request_head(data: bytes) -> RequestHead:
    """Read a head that matched :data:`router.proxy.wire.grammar.REQUEST_HEAD`.

    :raises RequestFault: for a method, length, transfer coding or host that leaves anything to guess.
    """
    method = data[: data.index(b" ")]
    if method not in METHODS:
        raise RequestFault("method_unknown", "this method is not served here", 501)
    if data.count(b"\r\n") > MAX_LINES:  # before thousands of them are taken in
        raise RequestFault("too_many_headers", f"more than {MAX_FIELDS} header fields", 431)
    head = RequestHead()
    parser = httptools.HttpRequestParser(head)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass  # an offer to change protocols may be ignored (RFC 9110 7.8)
    except httptools.HttpParserError as error:
        raise RequestFault("malformed_request", str(error)) from error
    head.method = method
    head.path = head.target.partition(b"?")[0]
    head.end_to_end = None
    head.minor = data[data.index(b"\r\n") - 1] - _ZERO
    _check_host(head)
    head.content_length = _request_length(head)
    head.keep_alive = _keeps_alive(head, head.minor)
    head.expects_continue = _expects_continue(head)
    return head


def read_answer_head(data: bytes) -> AnswerHead:
    """Read a head that matched :data:`router.proxy.wire.grammar.ANSWER_HEAD`.

    :raises AnswerFault: for a length or transfer coding that leaves anything to guess.
    """
    if data.count(b"\r\n") > MAX_LINES:
        raise AnswerFault("too_many_headers", f"more than {MAX_FIELDS} header fields")
    head = AnswerHead()
    parser = httptools.HttpResponseParser(head)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        raise AnswerFault("upgraded", "the engine switched protocols unasked") from None
    except httptools.HttpParserError as error:
        raise AnswerFault("malformed_answer", str(error)) from error
    head.status = parser.get_status_code()
    head.minor = data[len(b"HTTP/1.")] - _ZERO
    _read_answer_framing(head)
    unframed = head.content_length is None and not head.chunked
    head.keep_alive = not unframed and _keeps_alive(head, head.minor)
    head.is_stream = head.fields.get(b"content-type", b"").lower().startswith(EVENT_STREAM)
    return head


def _keeps_alive(head: Head, minor: int) -> bool:
    if b"connection" not in head.fields:
        return minor == 1
    members = head.connection
    return _CLOSE not in members and (minor == 1 or _KEEP_ALIVE in members)


def _check_host(head: RequestHead) -> None:
    host = head.fields.get(b"host")
    if head.is_repeated(b"host") or (host is None and head.minor == 1) or (host and not valid_host(host)):
        raise RequestFault("bad_host", "exactly one valid Host is needed")


def _request_length(head: RequestHead) -> int | None:
    length = head.fields.get(b"content-length")
    coding = head.fields.get(b"transfer-encoding")
    if coding is not None:
        _check_coding(head, coding, length)
        return None
    if length is None:
        return 0
    number = None if head.is_repeated(b"content-length") else parse_length(length)
    if number is None:
        raise RequestFault("bad_content_length", "Content-Length must be one plain number")
    return number


def _check_coding(head: RequestHead, coding: bytes, length: bytes | None) -> None:
    if length is not None:
        raise RequestFault("conflicting_lengths", "Content-Length and Transfer-Encoding exclude each other")
    if head.minor == 0:
        raise RequestFault("bad_transfer_encoding", "HTTP/1.0 has no Transfer-Encoding")
    if head.is_repeated(b"transfer-encoding") or coding.lower() != b"chunked":
        raise RequestFault("bad_transfer_encoding", "the only transfer coding read here is chunked", 501)


def _expects_continue(head: RequestHead) -> bool:
    expectation = head.fields.get(b"expect")
    if expectation is None or head.minor == 0:
        return False
    if expectation.lower() != b"100-continue":
        raise RequestFault("expectation_failed", "the only expectation met here is 100-continue", 417)
    return True


def _read_answer_framing(head: AnswerHead) -> None:
    length = head.fields.get(b"content-length")
    coding = head.fields.get(b"transfer-encoding")
    head.chunked = coding is not None
    head.content_length = None
    if coding is not None:
        if length is not None:
            raise AnswerFault("conflicting_lengths", "Content-Length and Transfer-Encoding in one answer")
        if head.minor == 0 or head.is_repeated(b"transfer-encoding") or coding.lower() != b"chunked":
            raise AnswerFault("bad_transfer_encoding", "an answer with a transfer coding other than chunked")
    elif length is not None:
        head.content_length = None if head.is_repeated(b"content-length") else parse_length(length)
        if head.content_length is None:
            raise AnswerFault("bad_content_length", "an answer whose Content-Length is not one plain number")
    if head.status in (204, 304):
        head.chunked = False
        head.content_length = 0


__all__ = ["AnswerHead", "Fields", "Head", "RequestHead", "read_answer_head", "read_request_head"]
