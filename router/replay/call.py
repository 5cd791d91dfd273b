"""What is sent: requests still to be written, and where they come from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from router.replay.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Call:
    """One request that is due. ``body`` is written when it is sent, not before: prompts are large."""

    body: Callable[[], bytes]
    workload: str | None = None
    session: str | None = None
    keep_text: bool = False


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A call to send ``delay_s`` seconds (of the traffic's own time) after an answer ended."""

    delay_s: float
    call: Call


class Source(Protocol):
    """Where calls come from."""

    @property
    def total(self) -> int | None:
        """How many calls there will be; None when nobody knows."""
        ...

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        """Yield (seconds since the start, call) in order of time: whatever does not wait for an answer."""
        ...

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        """Return what comes after a call has ended (``exchange`` is None when it failed), if anything does."""
        ...


@dataclass(frozen=True, slots=True)
class BodyWriter:
    """Writes request bodies: streaming, with usage, of a fixed length whatever the engine would rather say."""

    model: str
    chat: bool = True
    max_output: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path that the bodies are for."""
        return "/v1/chat/completions" if self.chat else "/v1/completions"

    def prompt(self, text: bytes, output_tokens: int) -> bytes:
        """Write a body around ASCII text that needs no escaping."""
        opening = b'"messages":[{"role":"user","content":"' if self.chat else b'"prompt":"'
        closing = b'"}]}' if self.chat else b'"}'
        return b"%b,%b%b%b" % (self._fields(output_tokens)[:-1], opening, text, closing)

    def messages(self, messages: list[dict[str, str]], output_tokens: int) -> bytes:
        """Write a chat body."""
        return b"%b,%b" % (self._fields(output_tokens)[:-1], orjson.dumps({"messages": messages})[1:])

    def _fields(self, output_tokens: int) -> bytes:
        limit = output_tokens if self.max_output is None else min(output_tokens, self.max_output)
        fields = {
            "model": self.model,
            "max_tokens": max(1, limit),
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return orjson.dumps(fields | dict(self.extra))
