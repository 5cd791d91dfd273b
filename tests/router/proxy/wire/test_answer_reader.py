"""Answers from bytes, however they are cut; the end of one is never guessed."""

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.proxy.wire.answer_heads import MOST_HEADS, AnswerHeads
from router.proxy.wire.answer_reader import AnswerReader
from router.proxy.wire.faults import AnswerFault
from router.proxy.wire.head import MAX_FIELDS

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(pieces: list[bytes], *, ends: bool = False) -> tuple[int, bytes, bool]:
    """Return status, body, and whether the answer is complete."""
    reader = AnswerReader(4096, AnswerHeads())
    body = b"".join(reader.feed(piece) for piece in pieces)
    if ends and not reader.complete:
        reader.end()
    return (0 if reader.head is None else reader.head.status), body, reader.complete


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.data())
def test_chunks_come_out_whole_however_the_bytes_are_cut(payload: list[bytes], data: st.DataObject) -> None:
    raw = CHUNKED + b"".join(b"%X\r\n%b\r\n" % (len(p), p) for p in payload) + b"0\r\nX-T: 1\r\n\r\n"
    expected = (200, b"".join(payload), True)
    assert read([raw]) == expected
    assert read([raw[i : i + 1] for i in range(len(raw))]) == expected
    place = data.draw(st.integers(0, len(raw)))
    assert read([raw[:place], raw[place:]]) == expected


@pytest.mark.parametrize(
    ("raw", "is_read"),
    [
        (b"1;" + b"a" * 240 + b"\r\nx\r\n0\r\n\r\n", True),
        (b"1;" + b"a" * 241 + b"\r\nx\r\n0\r\n\r\n", False),
        (b"1\r\nx\r\n0\r\nT: " + b"a" * 8100 + b"\r\n\r\n", True),
        (b"1\r\nx\r\n0\r\nT: " + b"a" * 8200 + b"\r\n\r\n", False),
        (b"1\r\nx\r\n0\r\n" + b"T: a\r\n" * 1365 + b"\r\n", True),
        (b"1\r\nx\r\n0\r\n" + b"T: a\r\n" * 1366 + b"\r\n", False),
        (b"1\r\nx\r\n0\r\nT\r\n\r\n", False),
        (b"1\r\nx\r\n0\r\nT: a\nU: b\r\n\r\n", False),
    ],
)
def test_extensions_and_trailers_have_the_same_limits_however_the_bytes_are_cut(raw: bytes, is_read: bool) -> None:
    for size in (len(raw), 1, 100):
        pieces = [CHUNKED, *(raw[at : at + size] for at in range(0, len(raw), size))]
        if is_read:
            assert read(pieces) == (200, b"x", True)
        else:
            with pytest.raises(AnswerFault):
                read(pieces)


@pytest.mark.parametrize("fields", [100, 101])
def test_an_answer_head_has_the_same_limits_however_the_bytes_are_cut(fields: int) -> None:
    raw = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (fields - 1) + b"Content-Length: 0\r\n\r\n"
    for size in (len(raw), 1, 100):
        pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
        if fields <= MAX_FIELDS:
            assert read(pieces) == (200, b"", True)
        else:
            with pytest.raises(AnswerFault):
                read(pieces)


@pytest.mark.parametrize("head", [b"a", b"A", b"0a", b"0000000A", b"a;x=y", b"a;"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_chunk_length_is_up_to_eight_hexadecimal_digits(head: bytes, size: int) -> None:
    chunk = head + b"\r\n0123456789\r\n"
    pieces = [chunk[at : at + size] for at in range(0, len(chunk), size)]
    assert read([CHUNKED, *pieces, *pieces, b"0\r\n\r\n"]) == (200, b"0123456789" * 2, True)


@pytest.mark.parametrize(
    "head", [b"", b"00000000a", b"g", b"0xa", b"+a", b"-a", b" a", b"a ", b"1_0", b"A\n", b"@", b"`"]
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_any_other_chunk_length_is_refused(head: bytes, size: int) -> None:
    chunk = head + b"\r\n0123456789\r\n"
    with pytest.raises(AnswerFault):
        read([CHUNKED, *(chunk[at : at + size] for at in range(0, len(chunk), size)), b"0\r\n\r\n"])


@pytest.mark.parametrize("end", [b"xx", b"x\n", b"\rx", b"\n\r"])
def test_a_chunk_that_is_longer_than_its_length_says_is_refused(end: bytes) -> None:
    with pytest.raises(AnswerFault):
        read([CHUNKED, b"a\r\n0123456789" + end, b"0\r\n\r\n"])


@settings(max_examples=500)
@given(st.data(), st.lists(st.binary(min_size=1, max_size=12), max_size=3))
def test_a_damaged_answer_is_refused_or_read_as_a_strict_parser_reads_it(
    data: st.DataObject, payload: list[bytes]
) -> None:
    raw = bytearray(CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in payload) + b"0\r\n\r\n")
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    try:
        status, body, complete = read([bytes(raw)])
    except AnswerFault:
        return
    if complete:
        wire = h11.Connection(h11.CLIENT)
        wire.send(h11.Request(method="POST", target="/", headers=[("Host", "x")]))
        wire.send(h11.EndOfMessage())
        wire.receive_data(bytes(raw))
        head = wire.next_event()
        assert isinstance(head, h11.Response)
        strict = b""
        while isinstance(event := wire.next_event(), h11.Data):
            strict += event.data
        assert (head.status_code, strict) == (status, body)
        assert isinstance(event, h11.EndOfMessage)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", "surplus_bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc", "surplus_bytes"),
        (b"HTTP/1.1 204 No Content\r\n\r\nabc", "surplus_bytes"),
        (CHUNKED + b"0\r\n\r\nx", "surplus_bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n", "malformed_answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed_answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "malformed_answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "bad_transfer_encoding"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "bad_transfer_encoding"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "upgraded"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "interim_answers"),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "malformed_answer"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", "malformed_answer"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "malformed_answer"),
        (b"<html>", "malformed_answer"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 5000, "head_too_large"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n", "too_many_headers"),
        (CHUNKED + b"-1\r\n", "malformed_body"),
        (CHUNKED + b"1\r\nab", "malformed_body"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(raw: bytes, code: str) -> None:
    with pytest.raises(AnswerFault) as refused:
        read([raw])
    assert refused.value.code in (code, "malformed_answer", "bad_content_length", "conflicting_lengths")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
        CHUNKED + b"1\r\na\r\n",
        CHUNKED + b"0\r\n",
    ],
)
def test_an_end_before_the_end_is_a_fault(raw: bytes) -> None:
    with pytest.raises(AnswerFault):
        read([raw], ends=True)


def test_without_a_length_the_connection_ends_the_body_and_is_not_used_again() -> None:
    reader = AnswerReader(4096, AnswerHeads())
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") == b"ab"
    assert reader.feed(b"c") == b"c"
    reader.end()
    assert reader.complete
    assert reader.head is not None
    assert not reader.head.keep_alive


def test_heads_that_repeat_are_read_once_and_only_a_few_are_kept() -> None:
    heads = AnswerHeads()
    raw = b"HTTP/1.1 200 OK\r\nX: %d\r\nContent-Length: 0\r\n\r\n"
    first = heads.read(raw % 0)
    assert heads.read(raw % 0) is first
    for number in range(MOST_HEADS + 1):
        assert heads.read(raw % number).fields[b"x"] == b"%d" % number
    assert heads.read(raw % 0) is not first
    with pytest.raises(AnswerFault):
        heads.read(b"HTTP/1.1 200 OK\r\nX : 1\r\n\r\n")
