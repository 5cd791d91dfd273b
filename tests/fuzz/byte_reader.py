"""Values from bytes, so that a fuzzer that knows only bytes can make structures. It never runs out: zeros follow."""

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class ByteReader:
    """Reads on from the start of ``data``."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def below(self, limit: int) -> int:
        """Return a number in 0..limit-1 (limit <= 65,536)."""
        size = 1 if limit <= 256 else 2
        return int.from_bytes(self.take(size), "big") % limit

    def choice(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def rest(self) -> bytes:
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def pieces(self) -> list[bytes]:
        """Cut what is left after the first bytes, which say where."""
        cuts = [self.below(256) + 1 for _ in range(self.below(8))]
        rest, pieces = self.rest(), []
        for size in cuts:
            pieces.append(rest[:size])
            rest = rest[size:]
        return [piece for piece in (*pieces, rest) if piece]

    def json(self, names: Sequence[str], depth: int = 4) -> Any:
        """Return a JSON value whose objects use the given names."""
        kind = self.below(9 if depth else 6)
        if kind == 0:
            return None
        if kind == 1:
            return self.choice([True, False])
        if kind == 2:
            return self.choice([0, 1, -1, 7, 2**31, 2**53, 2**63, 2**64 - 1, 1.5, 1e308])
        if kind == 3:
            return self.choice(names)
        if kind in (4, 5):
            return self.take(self.below(24)).decode("utf-8", "replace")
        if kind == 6:
            return [self.json(names, depth - 1) for _ in range(self.below(4))]
        return {self.choice(names): self.json(names, depth - 1) for _ in range(self.below(6))}
