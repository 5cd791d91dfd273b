"""Events, looked at while they pass: errors wherever the bytes are cut, comments, and the closing event."""

import json

import pytest

from router.proxy.errors import UpstreamFailed
from router.proxy.sse import ErrorWatch, closing_event, only_comments

ERRORS = {
    b'data: {"error": {"message": "busy", "type": "x", "param": null, "code": 503}}\n\n': 503,
    b'data: {"error":{"message":"m","code":"500"}}\n\n': 500,
    b'data: {"error":"Unauthorized"}\n\n': 500,
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n': 500,
    b'data: {"choices":[]}\n\ndata: {"error":{"code":429}}\n\n': 429,
}
NO_ERRORS = [
    b'data: {"choices":[{"delta":{"content":"data: {\\"error\\": 1}"}}]}\n\n',
    b'data: {"type":"response.created","response":{"error":null}}\n\n',
    b'data: {"error":null,"choices":[]}\n\n',
    b'data: {"error":  null, "choices": []}\n\n',
    b'data: {\n"error": 1}\n\n',
    b": error\n\n",
    b"data: [DONE]\n\n",
]


@pytest.mark.parametrize("event", ERRORS)
def test_an_error_event_is_seen_once_wherever_it_is_cut(event: bytes) -> None:
    for place in range(len(event) + 1):
        watch = ErrorWatch()
        seen = [watch.see(piece) for piece in (b"data: {}\n\n", event[:place], event[place:])]
        assert [code for code in seen if code is not None] == [ERRORS[event]]
    watch = ErrorWatch()
    assert [c for c in (watch.see(event[i : i + 1]) for i in range(len(event))) if c is not None] == [ERRORS[event]]


@pytest.mark.parametrize("event", NO_ERRORS)
def test_what_only_looks_like_an_error_is_none(event: bytes) -> None:
    assert ErrorWatch().see(event) is None
    watch = ErrorWatch()
    assert not any(watch.see(event[i : i + 1]) for i in range(len(event)))


def test_a_line_without_end_is_not_kept() -> None:
    watch = ErrorWatch()
    for _ in range(100):
        assert watch.see(b"x" * 10_000) is None
    assert len(watch._open) < 20_000


@pytest.mark.parametrize(
    ("piece", "only"),
    [
        (b": keep-alive\n\n", True),
        (b": a\n\n: b\n\n", True),
        (b"\n\n", True),
        (b": a\n\ndata: {}\n\n", False),
        (b"data: {}\n\n", False),
    ],
)
def test_comments_are_told_from_events(piece: bytes, only: bool) -> None:
    assert only_comments(piece) is only


@pytest.mark.parametrize("last", [b"}\n\n", b"\r\n\r\n", b"x\n", b"data", b""])
@pytest.mark.parametrize("named", [False, True])
def test_the_closing_event_stands_alone(last: bytes, named: bool) -> None:
    text = last + closing_event(UpstreamFailed("gone"), last, named)
    *_, event, end = text.replace(b"\r\n", b"\n").split(b"\n\n")
    assert end == b""
    lines = dict(line.split(b": ", 1) for line in event.split(b"\n"))
    document = json.loads(lines[b"data"])
    assert document["error"]["message"] == "gone"
    assert (document.get("type") == "error") is named
    assert (lines.get(b"event") == b"error") is named
