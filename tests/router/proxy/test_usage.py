"""Usage, read from the end of an answer, whoever wrote it and however much follows it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.proxy.usage import KEPT_BYTES, Tail, Usage, read_usage


@pytest.mark.parametrize(
    ("tail", "usage"),
    [
        (b'{"usage":{"prompt_tokens":17,"completion_tokens":4,"total_tokens":21}}', Usage(17, 4, None)),
        (b'{"usage": {"prompt_tokens": 17, "completion_tokens": 4}}', Usage(17, 4, None)),
        (
            b'"usage":{"prompt_tokens":17,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16}},"x":1}',
            Usage(17, 4, 16),
        ),
        (b'"usage":{"prompt_tokens":17,"prompt_tokens_details":null}', Usage(17, 0, None)),
        (b'"usage":{"input_tokens":5,"output_tokens":2,"input_tokens_details":{"cached_tokens":3}}', Usage(5, 2, 3)),
        (b'"usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":3}', Usage(8, 2, 3)),
        (b'"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage":null}\n\n', Usage(1, 1, None)),
        (b'"usage":{"prompt_tokens":1}},{"usage":{"prompt_tokens":2,"completion_tokens":3}}', Usage(2, 3, None)),
        (b'{"content":"\\"usage\\":{\\"prompt_tokens\\":9}"}', None),
        (b'"usage":{"prompt_tokens":17', None),
        (b'"usage":{"prompt_tokens":"many"}', None),
        (b'"usage":{"prompt_tokens":-1}', None),
        (b'"usage":{"prompt_tokens":1.5}', None),
        (b'"usage":null', None),
        (b'"usage":{}', None),
        (b"", None),
    ],
)
def test_the_last_usage_is_read(tail: bytes, usage: Usage | None) -> None:
    assert read_usage(tail) == usage


@given(st.binary(max_size=200))
def test_no_bytes_break_it(tail: bytes) -> None:
    read_usage(b'"usage":{' + tail)


@given(st.lists(st.binary(max_size=5000), max_size=30))
def test_a_tail_holds_the_last_bytes_and_not_many_more(pieces: list[bytes]) -> None:
    tail = Tail()
    for piece in pieces:
        tail.add(piece)
    whole = b"".join(pieces)
    assert whole.endswith(tail.bytes())
    assert len(tail.bytes()) >= min(len(whole), KEPT_BYTES)
    assert len(tail.bytes()) <= 2 * KEPT_BYTES + 5000


@given(st.lists(st.integers(1, 3000), max_size=60), st.lists(st.integers(1, 5000), min_size=1), st.booleans())
def test_a_tail_counts_every_event_however_the_stream_is_cut(lengths: list[int], cuts: list[int], asked: bool) -> None:
    stream = b"".join(b"data: " + b"x" * length + b"\n\n" for length in lengths)
    tail, at = Tail(), 0
    while at < len(stream):
        for size in cuts:
            tail.add(stream[at : at + size])
            at += size
            if asked:
                assert tail.events == stream[:at].count(b"\n\n")
    assert tail.events == len(lengths)
