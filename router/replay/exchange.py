"""One request and what came back, read as its bytes arrive.

Only what is reported is decoded: the moment of the first and last token, usage, errors, and the text where the next
turn of a conversation needs it. Times are monotonic seconds.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from router.replay.errors import ExchangeError
from router.replay.sse import EventSplitter

_DONE = b"data: [DONE]"
_DATA = b"data: "
_ERROR = b'data: {"error"'
_USAGE = b'"usage":{'
_ABORTED = b'"finish_reason":"abort"'

MAX_BODY_BYTES = 1024 * 1024
"""How much is kept of a body that is no stream."""


class Exchange:
    """The state of one request; ``finished`` resolves to None, or raises :class:`ExchangeError`."""

    __slots__ = (
        "_events",
        "_keep_text",
        "_now",
        "_stream",
        "_text",
        "aborted",
        "began",
        "body",
        "cached_tokens",
        "chunks",
        "completion_tokens",
        "done",
        "finished",
        "first_s",
        "instance",
        "last_s",
        "policy",
        "prompt_tokens",
        "status",
        "stream_error",
    )

    def __init__(self, now: Callable[[], float], *, keep_text: bool = False, stream: bool = True) -> None:
        self._stream = stream
        self._now = now
        self._events = EventSplitter()
        self._keep_text = keep_text
        self._text: list[str] = []
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.began = False
        self.body = b""
        self.status = 0
        self.instance = ""
        self.policy = ""
        self.first_s: float | None = None
        self.last_s: float | None = None
        self.chunks = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.done = False
        self.aborted = False
        self.stream_error = ""

    @property
    def text(self) -> str:
        """What was generated (kept only when asked for)."""
        return "".join(self._text)

    def rearm(self) -> None:
        """Make ready for another attempt after one that brought nothing."""
        self.finished = asyncio.get_running_loop().create_future()

    def header(self, name: bytes, value: bytes) -> None:
        """Take a response header; ``name`` is in lower case."""
        if name == b"x-pointsman-instance":
            self.instance = value.decode("latin-1")
        elif name == b"x-pointsman-policy":
            self.policy = value.decode("latin-1")

    def data(self, data: bytes) -> None:
        """Take a part of the response body."""
        if self.status != 200 or not self._stream:
            self.body += data[: MAX_BODY_BYTES - len(self.body)]
            return
        for event in self._events.feed(data):
            self._event(event)

    def complete(self) -> None:
        """The response has ended properly."""
        if self.finished.done():
            return
        error = self._verdict()
        if error is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(error)

    def fail(self, kind: str, detail: str = "") -> None:
        """The connection or the protocol broke."""
        if not self.finished.done():
            self.finished.set_exception(ExchangeError(kind, detail))

    def _event(self, event: bytes) -> None:
        if event.startswith(_DONE):
            self.done = True
        elif event.startswith(_ERROR):
            self._error(event)
        elif event.startswith(_DATA):
            self._chunk(event)

    def _chunk(self, event: bytes) -> None:
        if _USAGE in event:
            self._usage(orjson.loads(event[len(_DATA) :]))
        if b'"choices":[]' in event:
            return
        now_s = self._now()
        if self.first_s is None:
            self.first_s = now_s
        self.last_s = now_s
        self.chunks += 1
        if _ABORTED in event:
            self.aborted = True
        if self._keep_text:
            self._keep(orjson.loads(event[len(_DATA) :]))

    def _usage(self, chunk: dict[str, Any]) -> None:
        usage = chunk["usage"]
        self.prompt_tokens = usage.get("prompt_tokens", 0)
        self.completion_tokens = usage.get("completion_tokens", 0)
        self.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0

    def _keep(self, chunk: dict[str, Any]) -> None:
        choice = chunk["choices"][0]
        self._text.append((choice.get("delta") or {}).get("content") or choice.get("text") or "")

    def _error(self, event: bytes) -> None:
        try:
            code = orjson.loads(event[len(_DATA) :])["error"].get("code")
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            code = None
        self.stream_error = f"stream_{code}" if code else "stream_error"

    def _verdict(self) -> ExchangeError | None:
        if self.status != 200:
            return ExchangeError(f"http_{self.status}", self.body.decode(errors="replace"))
        if self.stream_error:
            return ExchangeError(self.stream_error)
        if self.aborted:
            return ExchangeError("aborted")
        if self._stream and (not self.done or self._events.pending):
            return ExchangeError("truncated")
        return None
