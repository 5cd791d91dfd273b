"""A copy of an answer, kept while it passes for whoever learns from it; bounded for each answer and for all."""

from router.proxy.usage import Tail

MOST_ANSWER_BYTES = 4 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024


class CopyBudget:
    """How many bytes all copies hold."""

    __slots__ = ("held_bytes",)

    def __init__(self) -> None:
        self.held_bytes = 0


class AnswerCopy(Tail):
    """Stands in for an answer's :class:`Tail` and keeps all of it; what is too large is only a tail again.

    :meth:`release` at the end, once.
    """

    __slots__ = ("_budget", "_counted", "whole")

    def __init__(self, budget: CopyBudget) -> None:
        super().__init__()
        self._budget = budget
        self._counted = 0
        self.whole = True
        """Whether nothing was left out."""

    def add(self, piece: bytes) -> None:
        """Take in the next piece."""
        if not self.whole:
            super().add(piece)
            return
        self._pieces.append(piece)
        self._kept += len(piece)
        self._events_kept = None
        self._counted += len(piece)
        budget = self._budget
        budget.held_bytes += len(piece)
        if self._kept > MOST_ANSWER_BYTES or budget.held_bytes > MOST_BYTES:
            self.release()
            self.whole = False

    def release(self) -> None:
        """Give back what is counted of the budget."""
        self._budget.held_bytes -= self._counted
        self._counted = 0
