"""Requests from bytes, however they are cut; and never other requests than a strict parser sees."""

from contextlib import suppress

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from router.proxy.wire.faults import RequestFault
from router.proxy.wire.request_reader import ReadState, RequestReader

Seen = tuple[bytes, bytes, bytes]
"""Method, target, body."""


def read(pieces: list[bytes], max_body: int = 10_000) -> tuple[list[Seen], bytes | None]:
    """Return the requests in a stream of pieces, and the code of the fault that ended it, if any."""
    reader = RequestReader(max_head_bytes=4096, max_body_bytes=max_body)
    seen: list[Seen] = []
    try:
        for piece in pieces:
            reader.feed(piece)
            while reader.state is ReadState.COMPLETE:
                assert reader.head is not None
                seen.append((reader.head.method, reader.head.target, reader.body()))
                reader.next()
    except RequestFault as fault:
        return seen, fault.code.encode()
    return seen, None


def read_strictly(raw: bytes) -> list[Seen]:
    """Return the whole requests that h11 sees, up to its first complaint."""
    seen: list[Seen] = []
    wire = h11.Connection(h11.SERVER, max_incomplete_event_size=4096)
    wire.receive_data(raw)
    try:
        while True:
            head = wire.next_event()
            if not isinstance(head, h11.Request):
                return seen
            body = b""
            while isinstance(event := wire.next_event(), h11.Data):
                body += event.data
            if not isinstance(event, h11.EndOfMessage):
                return seen
            seen.append((head.method, head.target, body))
            wire.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            wire.send(h11.EndOfMessage())
            wire.start_next_cycle()
    except (h11.RemoteProtocolError, h11.LocalProtocolError):
        return seen


SMUGGLING = (
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
)
BODIES = st.binary(max_size=60)


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    pieces = draw(st.lists(st.binary(min_size=1, max_size=20), max_size=4))
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Well-formed requests."""
    start = draw(st.sampled_from([b"POST /v1/x?y=1 HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n", b"PUT /a HTTP/1.1\r\n"]))
    fields = draw(
        st.lists(st.sampled_from([b"A: b\r\n", b"X-Y:\tz \r\n", b"Accept: */*\r\n", b"Long: " + b"l" * 99 + b"\r\n"]))
    )
    head = start + b"Host: h\r\n" + b"".join(fields)
    if draw(st.booleans()):
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + draw(chunked())
    body = draw(BODIES)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


@st.composite
def cut(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    places = sorted(draw(st.sets(st.integers(1, max(1, len(raw) - 1)), max_size=12)))
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True) if raw[a:b]]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Requests with a few bytes changed, taken out, doubled or put in: what a smuggler would send."""
    raw = bytearray(b"".join(draw(st.lists(requests(), min_size=1, max_size=3))))
    inserts = st.sampled_from(
        [
            b"\r\n",
            b"\n",
            b"\r",
            b" ",
            b"\t",
            b"\0",
            b":",
            b"Content-Length: 3\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"0\r\n\r\n",
        ]
    )
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(raw)))
        kind = draw(st.integers(0, 2))
        if kind == 0:
            raw[place:place] = draw(inserts)
        elif kind == 1:
            del raw[place : place + draw(st.integers(1, 4))]
        else:
            raw[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
    return bytes(raw)


@given(st.data(), st.lists(requests(), min_size=1, max_size=4))
def test_the_same_requests_come_out_however_the_bytes_are_cut(data: st.DataObject, given_: list[bytes]) -> None:
    raw = b"".join(given_)
    whole, fault = read([raw])
    assert fault is None
    assert len(whole) == len(given_)
    assert whole == read_strictly(raw)
    assert read(data.draw(cut(raw))) == (whole, None)
    assert read([raw[i : i + 1] for i in range(len(raw))]) == (whole, None)


@settings(max_examples=600)
@given(st.data(), mutated())
@example(None, SMUGGLING)
def test_what_is_accepted_is_what_a_strict_parser_accepts(data: st.DataObject | None, raw: bytes) -> None:
    """h11 is lenient in places (line feeds alone, folded fields): there ours refuses. Never the other way round."""
    seen, _ = read([raw])
    strict = read_strictly(raw)
    assert seen == strict[: len(seen)]
    if data is not None:
        assert read(data.draw(cut(raw)))[0] == seen


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_at_all_crash_it_or_make_it_hold_more_than_its_limits(pieces: list[bytes]) -> None:
    reader = RequestReader(max_head_bytes=64, max_body_bytes=64)
    with suppress(RequestFault):
        for piece in pieces:
            reader.feed(piece)
            assert reader.pending_bytes <= 64 + 40
            assert reader.body_bytes <= 64
            if reader.state is ReadState.COMPLETE:
                reader.next()


def test_nothing_may_stand_before_a_request() -> None:
    raw = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    assert read([b"\r\n" + raw]) == ([], b"malformed_request")


@pytest.mark.parametrize(
    ("raw", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: X-A, Close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", True),
    ],
)
def test_what_a_request_says_about_its_connection(raw: bytes, keeps: bool) -> None:
    reader = RequestReader(4096, 0)
    reader.feed(raw)
    assert reader.head is not None
    assert reader.head.keep_alive is keeps


def test_a_head_that_repeats_is_recognised_by_every_byte_but_its_length() -> None:
    head = b"POST /v1/x HTTP/1.1\r\nHost: h\r\nX-A: 1\r\ncontent-length: %b\r\nX-B: 2\r\n\r\n"
    reader = RequestReader(4096, 10_000)
    for body in (b"ab", b"c" * 1234, b"", b"d"):
        reader.feed(head % b"%d" % len(body) + body)
        assert reader.state is ReadState.COMPLETE
        assert reader.head is not None
        assert (reader.head.method, reader.head.path, reader.head.fields[b"x-b"]) == (b"POST", b"/v1/x", b"2")
        assert reader.body() == body
        reader.next()
    for damaged in (b"+1", b"1 1", b"0x1", b"1\r\nX-C: 3", b"1" * 16, b"", b"1\r\ncontent-length: 1"):
        reader = RequestReader(4096, 10_000)
        reader.feed(head % b"1" + b"a")
        reader.next()
        again = RequestReader(4096, 10_000)
        outcomes = []
        for one in (reader, again):
            try:
                one.feed(head % damaged + b"a")
            except RequestFault as fault:
                outcomes.append((fault.code, None))
            else:
                assert one.head is not None
                outcomes.append(("", dict(one.head.fields)))
        assert outcomes[0] == outcomes[1], damaged
