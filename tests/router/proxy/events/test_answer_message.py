"""An answer becomes the message that a client sends back: streamed or whole, with tool calls, and only if complete."""

import random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.proxy.events import answer_message
from router.proxy.events.answer_message import completion_text


def chat_message(answer: bytes, *, streamed: bool) -> Any:
    """Read to the end."""
    reading = answer_message.chat_message(answer, streamed=streamed)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


def stream(*bodies: Any) -> bytes:
    return b"".join(b"data: " + orjson.dumps(body) + b"\n\n" for body in bodies) + b"data: [DONE]\n\n"


def delta(reason: str | None = None, index: int = 0, **members: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": members, "finish_reason": reason}]}


def whole(message: dict[str, Any], reason: str = "stop") -> bytes:
    return orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": reason}]})


def test_pieces_of_a_stream_are_put_together() -> None:
    answer = b": keep-alive\n\n" + stream(
        delta(role="assistant", content=""),
        delta(content="Grüße"),
        delta(content=", \n"),
        delta("length", content="du"),
        {"choices": [], "usage": {"prompt_tokens": 3}},
    )
    assert chat_message(answer, streamed=True) == {"role": "assistant", "content": "Grüße, \ndu"}


def event(content: str) -> bytes:
    """An event as vLLM writes it."""
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    return head + b'{"content":%b},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n' % orjson.dumps(content)


@given(st.lists(st.text(max_size=8), max_size=30), st.integers(1, 7))
def test_events_that_need_no_decoding_say_the_same(texts: list[str], turn: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_message, "EVENTS_A_TURN", turn)
        fast = b"".join(map(event, texts)) + stream(delta("stop"))
        slow = stream(*(delta(content=text) for text in texts), delta("stop"))
        said = {"role": "assistant", "content": "".join(texts)}
        assert chat_message(fast, streamed=True) == chat_message(slow, streamed=True) == said
        for text in texts:
            for line in filter(None, event(text).splitlines()):
                assert answer_message._PLAIN.fullmatch(line) is not None


def test_a_long_answer_is_read_in_slices() -> None:
    reading = answer_message.chat_message(event("x") * 1000 + stream(delta("stop")), streamed=True)
    assert sum(1 for _ in reading) == 10


def test_a_whole_answer_keeps_only_what_clients_send_back() -> None:
    message = {"role": "assistant", "content": "hi", "refusal": None, "reasoning": "hm", "tool_calls": []}
    assert chat_message(whole(message), streamed=False) == {"role": "assistant", "content": "hi"}


def test_tool_calls_are_the_same_streamed_and_whole() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    other = {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    streamed = stream(
        delta(role="assistant", content=None),
        delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}]),
        delta(
            "tool_calls",
            tool_calls=[{"index": 1, "id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
        ),
    )
    expected = {"role": "assistant", "content": None, "tool_calls": [call, other]}
    assert chat_message(streamed, streamed=True) == expected
    assert chat_message(whole({"role": "assistant", "content": None, "tool_calls": [call, other]}), streamed=False) == (
        expected
    )


@pytest.mark.parametrize(
    "answer",
    [
        stream(delta(content="cut")),
        stream(delta("abort", content="cut")),
        stream(delta("stop", content="a"), delta("stop", index=1, content="b")),
        stream({"error": {"code": 500}}),
        stream(delta("stop", content=3)),
        b"",
    ],
)
def test_what_is_cut_short_or_not_one_answer_is_no_message(answer: bytes) -> None:
    assert chat_message(answer, streamed=True) is None


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"choices":[{}]}', whole({"content": "x"}, "abort"), b'{"error":1}'])
def test_a_body_without_a_finished_message_is_none(answer: bytes) -> None:
    assert chat_message(answer, streamed=False) is None


def test_a_completion_is_its_texts() -> None:
    pieces = [{"choices": [{"index": 0, "text": t, "finish_reason": r}]} for t, r in (("a", None), ("b", "stop"))]
    assert completion_text(stream(*pieces), streamed=True) == "ab"
    assert completion_text(orjson.dumps(pieces[1]), streamed=False) == "b"
    assert completion_text(stream(pieces[0]), streamed=True) is None


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_no_message_and_no_crash(answer: bytes, streamed: bool) -> None:
    assert chat_message(answer, streamed=streamed) is None
    assert completion_text(answer, streamed=streamed) is None


@given(st.recursive(st.none() | st.integers(-9, 9) | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)))
def test_strange_members_are_no_crash(value: Any) -> None:
    rng = random.Random(1)
    for name in ("choices", "delta", "tool_calls", "content", "index", "function"):
        body: dict[str, Any] = delta("stop", content="x")
        target = rng.choice([body, body["choices"][0], body["choices"][0]["delta"]])
        target[name] = value
        chat_message(stream(body), streamed=True)
        chat_message(orjson.dumps(body), streamed=False)


@pytest.mark.parametrize("calls", [5, "calls", {"index": 0}, True])
def test_tool_calls_that_are_no_list_are_not_understood(calls: Any) -> None:
    assert chat_message(stream(delta(tool_calls=calls), delta("stop")), streamed=True) is None
