"""The observations that are kept: the newest of every size class, so that the common does not crowd out the telling."""

from collections import deque
from collections.abc import Iterator

from router.state.pace.cost_row import CostRow, RowKind

ROWS_A_CLASS = 16
"""Newest observations of a kind and size class that are kept; there are about 20 classes of each kind at most."""


class CostRows:
    """Observations by kind and size class."""

    __slots__ = ("_classes", "added", "decode_added")

    def __init__(self) -> None:
        self._classes: dict[tuple[RowKind, int], deque[CostRow]] = {}
        self.added = 0
        """How many ever came."""
        self.decode_added = 0
        """Of these, how many of decode."""

    def __iter__(self) -> Iterator[CostRow]:
        for rows in self._classes.values():
            yield from rows

    def __len__(self) -> int:
        return sum(map(len, self._classes.values()))

    def add(self, row: CostRow) -> None:
        """Keep an observation, in place of the oldest of its class."""
        key = row.kind, row.octave
        rows = self._classes.get(key)
        if rows is None:
            rows = self._classes[key] = deque(maxlen=ROWS_A_CLASS)
        rows.append(row)
        self.added += 1
        self.decode_added += row.kind is RowKind.DECODE

    @property
    def prefill_added(self) -> int:
        """How many of prefill ever came, first tokens among them."""
        return self.added - self.decode_added

    def count(self, *kinds: RowKind) -> int:
        """Return how many are kept of some kinds."""
        return sum(len(rows) for (kind, _), rows in self._classes.items() if kind in kinds)
