"""Answer heads that were read before: engines repeat theirs, and the same bytes always mean the same."""

from typing import Final

from router.proxy.wire.faults import AnswerFault
from router.proxy.wire.grammar import ANSWER_HEAD
from router.proxy.wire.head import AnswerHead, read_answer_head

MOST_HEADS: Final = 64
MOST_BYTES: Final = 2048


class AnswerHeads:
    """Reads heads, remembering a few small ones. What it returns is shared and must not be changed."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, AnswerHead] = {}

    def read(self, data: bytes) -> AnswerHead:
        """Read a head, its empty line included.

        :raises AnswerFault: for bytes that cannot be read safely.
        """
        head = self._known.get(data)
        if head is not None:
            return head
        if ANSWER_HEAD.fullmatch(data) is None:
            raise AnswerFault("malformed_answer", "the answer head is not valid HTTP/1.1")
        head = read_answer_head(data)
        if len(data) <= MOST_BYTES:
            if len(self._known) >= MOST_HEADS:
                self._known.clear()
            self._known[data] = head
        return head
