"""What engines say in ``usage``, read from the end of an answer without decoding the rest."""

import re
from typing import Any, Final

import msgspec
import orjson

KEPT_BYTES: Final = 16 * 1024
EVENT_END: Final = b"\n\n"
_LINE_END: Final = ord(b"\n")
_USAGE: Final = re.compile(rb'"usage"\s*:\s*\{')
_MAX_OBJECT = 4096


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts of one answer; ``cached_tokens`` is None where the engine does not report it."""

    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None


class Tail:
    """The last bytes of an answer body, gathered cheaply while it passes, and how many events were in all of it."""

    __slots__ = ("_events_before", "_events_kept", "_kept", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._kept = 0
        self._events_before = 0
        """In what is not kept any more."""
        self._events_kept: int | None = 0
        """In what is kept; None while nobody has asked since it changed."""

    def add(self, piece: bytes) -> None:
        """Take in the next piece."""
        self._pieces.append(piece)
        self._kept += len(piece)
        self._events_kept = None
        if self._kept > 2 * KEPT_BYTES:
            self._shorten()

    def bytes(self) -> bytes:
        """Return at least the last :data:`KEPT_BYTES` bytes, or all there were."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    @property
    def events(self) -> int:
        """How many events have ended so far, where the body is a stream."""
        if self._events_kept is None:
            self._events_kept = self.bytes().count(EVENT_END)
        return self._events_before + self._events_kept

    def _shorten(self) -> None:
        whole = self.bytes()
        start = len(whole) - KEPT_BYTES
        if whole[start - 1] == _LINE_END == whole[start]:  # the end of an event stays in one piece
            start -= 1
        self._events_before += whole.count(EVENT_END, 0, start)
        self._pieces = [whole[start:]]
        self._kept = len(whole) - start


def read_usage(tail: bytes) -> Usage | None:
    """Return the last usage object in ``tail``, or None. In JSON strings quotes are escaped, so no text is mistaken."""
    start = tail.rfind(b'"usage"')
    while start >= 0:
        match = _USAGE.match(tail, start)
        if match is not None:
            return _decode(tail, match.end() - 1)
        start = tail.rfind(b'"usage"', 0, start)
    return None


def _decode(tail: bytes, start: int) -> Usage | None:
    end = _object_end(tail, start)
    if end is None:
        return None
    try:
        fields = orjson.loads(tail[start:end])
    except orjson.JSONDecodeError:
        return None
    return _usage_of(fields)


def _object_end(tail: bytes, start: int) -> int | None:
    """Return where the object that opens at ``start`` is closed (usage holds no strings with braces)."""
    end = start
    while (end := tail.find(b"}", end, start + _MAX_OBJECT) + 1) > 0:
        if tail.count(b"{", start, end) == tail.count(b"}", start, end):
            return end
    return None


def _usage_of(fields: dict[str, Any]) -> Usage | None:
    """Read OpenAI's names (chat, completions, embeddings), those of responses, and Anthropic's."""
    if "prompt_tokens" in fields:
        prompt, output = fields["prompt_tokens"], fields.get("completion_tokens")
        cached = _member(fields.get("prompt_tokens_details"), "cached_tokens")
    elif "input_tokens" in fields:
        prompt, output = fields["input_tokens"], fields.get("output_tokens")
        cached = _member(fields.get("input_tokens_details"), "cached_tokens")
        read = fields.get("cache_read_input_tokens")
        if cached is None and _is_count(read):
            cached = _count(read)
            prompt = _count(prompt) + cached + _count(fields.get("cache_creation_input_tokens"))
    else:
        return None
    return Usage(prompt, _count(output), cached if _is_count(cached) else None) if _is_count(prompt) else None


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0
