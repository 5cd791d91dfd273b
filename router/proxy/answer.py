"""One answer on its way to the client: its framing there, and what is noticed while it passes."""

from typing import Final

from router.proxy.errors import ProxyError
from router.proxy.events.answer_copy import AnswerCopy, CopyBudget
from router.proxy.failure import Failure, FailureKind
from router.proxy.sse import ErrorWatch, closing_event, only_comments
from router.proxy.usage import Tail
from router.proxy.wire.encode import CHUNK_END, LAST_CHUNK, encode_answer_head
from router.proxy.wire.head import AnswerHead

NOT_IMPLEMENTED: Final = 501
_CHUNK_HEADS: Final = [b"%x\r\n" % length for length in range(1024)]
"""Those of most events, by their length."""


class Answer:
    """Frames payload bytes for one client; the bytes themselves are never changed."""

    __slots__ = (
        "chunked",
        "ends_with_connection",
        "head",
        "is_stream",
        "status",
        "tail",
        "watch",
    )

    def __init__(self, head: AnswerHead, client_minor: int, keeps_alive: bool) -> None:
        self.head = head
        self.status = head.status
        self.is_stream = head.is_stream
        unsized = head.content_length is None
        self.chunked = unsized and client_minor == 1
        self.ends_with_connection = not keeps_alive or (unsized and not self.chunked)
        self.tail: Tail = Tail()
        self.watch = ErrorWatch()

    @property
    def events(self) -> int:
        """Events seen so far; 0 where it is no stream."""
        return self.tail.events if self.is_stream else 0

    def keep_whole(self, budget: CopyBudget) -> None:
        """Keep a copy of all that comes, for whoever learns from it; before the first piece."""
        self.tail = AnswerCopy(budget)

    def first(self, lines: bytes, payload: bytes, complete: bool) -> bytes:
        """Return the head and the first payload bytes, for one write."""
        head = encode_answer_head(self.head, lines, self.chunked, self.ends_with_connection)
        return head + self.frame(payload, complete)

    def frame(self, payload: bytes, complete: bool) -> bytes:
        """Return payload bytes as the client is to receive them."""
        if payload:
            self.tail.add(payload)
        if not self.chunked:
            return payload
        if payload:
            length = len(payload)
            head = _CHUNK_HEADS[length] if length < len(_CHUNK_HEADS) else b"%x\r\n" % length
            return b"".join((head, payload, CHUNK_END + LAST_CHUNK if complete else CHUNK_END))
        return LAST_CHUNK if complete else b""

    def broken(self, error: ProxyError, named: bool) -> bytes:
        """Return what tells the client of a failure in the middle of a stream, in the stream."""
        return self.frame(closing_event(error, self.tail.bytes()[-4:], named), False)

    def first_failure(self, payload: bytes) -> Failure | None:
        """Return what makes the answer a failure, judged by its status and its first bytes.

        501 is none: what an engine does not do (llama.cpp: embeddings that were not switched on) it does for nobody.
        """
        if self.status >= 500 and self.status != NOT_IMPLEMENTED:
            return Failure(FailureKind.STATUS, f"status {self.status}", self.status)
        return self.failure_in(payload)

    def failure_in(self, payload: bytes) -> Failure | None:
        """Return the failure that an error event in a stream tells of, looked for in each piece once and in order."""
        status = self.watch.see(payload) if self.is_stream else None
        if status is None:
            return None
        return Failure(FailureKind.IN_STREAM, f"an error event with code {status} in the stream")

    def is_first_token(self, payload: bytes) -> bool:
        """Tell whether a piece shows that the engine has begun to generate: not an error, and not a comment."""
        return self.status < 300 and not (self.is_stream and only_comments(payload))
