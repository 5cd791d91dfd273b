"""The newest decisions of a worker, so that any request can be explained for a while after it was placed.

What was decided is kept as it is, and rendered only when somebody asks: keeping costs about a microsecond a request.
Sequences become tuples on the way in. A tuple of values that hold no containers is let go by the garbage collector, so
the memory does not make its rounds longer.
"""

from collections import deque
from typing import Final

import msgspec

from router.core.decision import Decision

MOST_DECISIONS: Final = 20_000
MOST_BYTES: Final = 64 << 20
DECISION_BYTES: Final = 900
"""About what one decision needs beside its candidates: the request, and the views that only it still holds."""
CANDIDATE_BYTES: Final = 152
"""About what one candidate needs: itself, its score and its places in tuples."""


class RecentDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision, when it was made (monotonic seconds), and whether any prefix class was on watch then."""

    at_s: float
    decision: Decision
    watching: bool = False


class RecentDecisions:
    """A bounded memory, oldest out first: so many decisions, or so many bytes, whichever is less."""

    def __init__(self, most: int = MOST_DECISIONS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: deque[RecentDecision] = deque()
        self._ids: deque[str] = deque()
        """Of the requests, beside them: all of them are looked through in less than a millisecond."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def estimated_bytes(self) -> int:
        """About how much memory is used."""
        return self._bytes

    def add(self, decision: Decision, at_s: float, watching: bool = False) -> None:
        """Keep a decision, and let the oldest go where there is no room for it."""
        kept = Decision(
            decision.request,
            decision.policy,
            tuple(decision.candidates),
            tuple(decision.scores),
            decision.chosen_index,
            tuple(decision.rejected),
            decision.hot,
        )
        self._kept.append(RecentDecision(at_s, kept, watching))
        self._ids.append(kept.request.id)
        self._bytes += size_bytes(kept)
        while self._bytes > self._most_bytes or len(self._kept) > self._most:
            self._ids.popleft()
            self._bytes -= size_bytes(self._kept.popleft().decision)

    def newest(self) -> RecentDecision | None:
        """Return the newest one; None while there is none."""
        return self._kept[-1] if self._kept else None

    def find(self, request_id: str) -> RecentDecision | None:
        """Return the newest decision about a request (a retry is decided again); None when it is not here."""
        back = next((at for at, known in enumerate(reversed(self._ids), start=1) if known == request_id), None)
        return None if back is None else self._kept[-back]


def size_bytes(decision: Decision) -> int:
    """Estimate what a decision needs in memory."""
    return DECISION_BYTES + CANDIDATE_BYTES * (len(decision.candidates) + len(decision.rejected))
