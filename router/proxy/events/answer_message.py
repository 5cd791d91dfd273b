"""From the bytes of a whole answer to what a client says it was in its next turn. Pure.

A conversation goes on with the answer as its newest message. Which members of it a client sends back is a convention:
the role, the content, and the tool calls without their position in the stream.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any

import orjson

EVENTS_A_TURN = 200
"""Events of a stream that are looked at in one go."""
_DATA = b"data:"
_PLAIN = re.compile(
    rb'data: \{[^{}\[\]]*"choices":\[\{"index":0,"delta":\{"content":("(?:[^"\\]|\\.)*")\},'
    rb'"logprobs":null,"finish_reason":null[^{}]*\}\][^{}]*\}'
)
"""An event that adds to the content of the only choice and says nothing else: nearly all are, and need no decoding."""
_DONE = b"[DONE]"
_BROKEN_OFF = frozenset({"abort", "error"})

Message = dict[str, Any]
"""A chat message as it stands in a request."""


Reading = Generator[None, None, Message | None]
"""Reads a message in slices: one for each ``next``, until it returns."""


def chat_message(answer: bytes, *, streamed: bool) -> Reading:
    """Read the assistant's message; None where there is none, more than one, or its end is missing."""
    if streamed:
        return (yield from _StreamedMessage().of(answer))
    choice = _only_choice(_json(answer))
    message = None if choice is None or not _ended(choice) else choice.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        return None
    calls = message.get("tool_calls")
    return _message(message.get("content") or "", calls if isinstance(calls, list) else [])


def completion_text(answer: bytes, *, streamed: bool) -> str | None:
    """Return the text of a completion; None where there is none, more than one, or its end is missing."""
    parts: list[str] = []
    ended = False
    for body in _events(answer) if streamed else [_json(answer)]:
        if not isinstance(body, dict) or not body.get("choices"):
            continue
        choice = _only_choice(body)
        if choice is None or not isinstance(choice.get("text"), str):
            return None
        parts.append(choice["text"])
        ended = ended or _ended(choice)
    return "".join(parts) if ended else None


class _StreamedMessage:
    """Puts the deltas of one choice together."""

    def __init__(self) -> None:
        self._plain: list[bytes] = []
        """Pieces of the content, as JSON strings."""
        self._calls: dict[int, dict[str, Any]] = {}
        self._ended = False

    def of(self, answer: bytes) -> Reading:
        for number, line in enumerate(answer.splitlines(), start=1):
            if number % EVENTS_A_TURN == 0:
                yield
            plain = _PLAIN.fullmatch(line)
            if plain is not None:
                self._plain.append(plain[1])
            elif line.startswith(_DATA) and not self._event(_data(line)):
                return None
        content = self._all_content()
        return _message(content, list(self._calls.values())) if self._ended and content is not None else None

    def _event(self, body: Any) -> bool:
        """Take in one event; False when it cannot be understood."""
        if not isinstance(body, dict) or not body.get("choices"):
            return True
        choice = _only_choice(body)
        if choice is None or not self._take(choice.get("delta")):
            return False
        self._ended = self._ended or _ended(choice)
        return True

    def _all_content(self) -> str | None:
        texts = _json(b"[%b]" % b",".join(self._plain))
        return None if texts is None else "".join(texts)

    def _take(self, delta: Any) -> bool:
        """Add a delta; False when it cannot be understood."""
        if delta is None:
            return True
        if not isinstance(delta, dict):
            return False
        content = delta.get("content")
        if isinstance(content, str):
            self._plain.append(orjson.dumps(content))
        elif content is not None:
            return False
        calls = delta.get("tool_calls") or []
        return isinstance(calls, list) and all(self._take_call(call) for call in calls)

    def _take_call(self, call: Any) -> bool:
        """Add a piece of a tool call: the first one has its id and name, the others lengthen its arguments."""
        if not isinstance(call, dict) or not isinstance(call.get("index", 0), int):
            return False
        known = self._calls.setdefault(
            call.get("index", 0), {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        )
        known["id"] = call.get("id") or known["id"]
        known["type"] = call.get("type") or known["type"]
        function = call.get("function")
        for name in ("name", "arguments"):
            piece = function.get(name) if isinstance(function, dict) else None
            if isinstance(piece, str):
                known["function"][name] += piece
        return True


def _message(content: str, calls: list[Any]) -> Message:
    if calls:
        return {"role": "assistant", "content": content or None, "tool_calls": calls}
    return {"role": "assistant", "content": content}


def _only_choice(body: Any) -> dict[str, Any] | None:
    """Return the one choice of a body; None when there are several, or it is not the first."""
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice: dict[str, Any] = choices[0]
    return choice if choice.get("index", 0) == 0 else None


def _ended(choice: dict[str, Any]) -> bool:
    reason = choice.get("finish_reason")
    return isinstance(reason, str) and reason not in _BROKEN_OFF


def _events(answer: bytes) -> Iterator[Any]:
    for line in answer.splitlines():
        if line.startswith(_DATA):
            yield _data(line)


def _data(line: bytes) -> Any:
    data = line[len(_DATA) :].strip()
    return None if data == _DONE else _json(data)


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
