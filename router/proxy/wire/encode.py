"""Encodes the heads that go out: the client's to the engine, and the engine's to the client."""

from http import HTTPStatus
from typing import Final

import msgspec

from router.proxy.wire.head import AnswerHead, Head, RequestHead

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_TO_ENGINE: Final = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"x-request-id"}
_RANK: Final = b"x-data-parallel-rank"
_NOT_TO_ENGINE_WITH_KEY: Final = _NOT_TO_ENGINE | {b"authorization", b"x-api-key"}
_NOT_TO_CLIENT: Final = HOP_BY_HOP | {b"content-length"}
_PLAIN_CONNECTION = ({b"keep-alive"}, {b"close"}, set[bytes]())
_WITH_BODY: Final = frozenset({b"POST", b"PUT", b"PATCH"})
CHUNK_END: Final = b"\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Outgoing:
    """What is ours in a request to an engine.

    ``authorization``, ``traceparent`` and ``rank`` replace the client's; ``drop_key`` takes its key out.
    """

    __slots__ = ("authorization", "body_bytes", "drop_key", "host", "rank", "request_id", "target", "traceparent")

    def __init__(self, target: bytes, host: bytes, request_id: bytes, body_bytes: int) -> None:
        self.target = target
        self.host = host
        self.request_id = request_id
        self.body_bytes = body_bytes
        self.authorization: bytes | None = None
        self.drop_key = False
        self.traceparent: bytes | None = None
        self.rank: int | None = None
        """The data-parallel rank that is to serve it."""


def encode_request_head(head: RequestHead, outgoing: Outgoing) -> bytes:
    """Return the head to send to an engine: end-to-end fields unchanged and in order, framing of our own."""
    secret = outgoing.authorization
    parts = [
        b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (head.method, outgoing.target, outgoing.host),
        _passed_on(head, outgoing),
    ]
    if secret is not None:
        parts.append(b"Authorization: %b\r\n" % secret)
    if outgoing.traceparent is not None:
        parts.append(b"traceparent: %b\r\n" % outgoing.traceparent)
    if outgoing.rank is not None:
        parts.append(b"X-data-parallel-rank: %d\r\n" % outgoing.rank)
    if outgoing.body_bytes or head.method in _WITH_BODY:
        parts.append(b"X-Request-Id: %b\r\nContent-Length: %d\r\n\r\n" % (outgoing.request_id, outgoing.body_bytes))
    else:
        parts.append(b"X-Request-Id: %b\r\n\r\n" % outgoing.request_id)
    return b"".join(parts)


def encode_answer_head(head: AnswerHead, extra: bytes, chunked: bool, close: bool) -> bytes:
    """Return the head to send to a client: the engine's fields in order, ``extra`` lines, framing of our own.

    :param chunked: frame the body in chunks; otherwise by the engine's Content-Length, or by the connection's end.
    """
    if head.end_to_end is None:
        start = b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)
        head.end_to_end = start + b"".join(_end_to_end(head, _NOT_TO_CLIENT))
    if chunked:
        framing = b"Transfer-Encoding: chunked\r\n"
    elif head.content_length is not None and head.status not in (204, 304):
        framing = b"Content-Length: %d\r\n" % head.content_length
    elif head.status == 304 and b"content-length" in head.fields:
        framing = b"Content-Length: %b\r\n" % head.fields[b"content-length"]
    else:
        framing = b""
    return b"%b%b%b%b" % (head.end_to_end, extra, framing, b"Connection: close\r\n\r\n" if close else b"\r\n")


class OwnAnswer(msgspec.Struct, frozen=True):
    """An answer of our own; ``lines`` is further header lines, each with its line end."""

    status: int
    content_type: bytes
    body: bytes
    lines: bytes = b""

    def encode(self, *, close: bool, without_body: bool) -> bytes:
        """Return the whole answer; ``without_body`` answers HEAD."""
        return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n%b\r\n%b" % (
            self.status,
            HTTPStatus(self.status).phrase.encode(),
            self.content_type,
            self.lines,
            len(self.body),
            b"Connection: close\r\n" if close else b"",
            b"" if without_body else self.body,
        )


def _passed_on(head: RequestHead, outgoing: Outgoing) -> bytes:
    """Return the client's own fields that the engine gets."""
    rank, traceparent = outgoing.rank, outgoing.traceparent
    if outgoing.authorization is None and not outgoing.drop_key and traceparent is None and rank is None:
        if head.end_to_end is None:
            head.end_to_end = b"".join(_end_to_end(head, _NOT_TO_ENGINE))
        return head.end_to_end
    dropped = _NOT_TO_ENGINE if outgoing.authorization is None and not outgoing.drop_key else _NOT_TO_ENGINE_WITH_KEY
    if traceparent is not None:
        dropped |= {b"traceparent"}
    if rank is not None:
        dropped |= {_RANK}
    return b"".join(_end_to_end(head, dropped))


def _end_to_end(head: Head, dropped: frozenset[bytes]) -> list[bytes]:
    if b"connection" in head.fields and (named := head.connection) not in _PLAIN_CONNECTION:
        dropped = dropped | named
    return [b"%b: %b\r\n" % (name, value) for lower, name, value in head.raw_fields if lower not in dropped]
