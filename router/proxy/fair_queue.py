"""A fair queue: each tenant gets an equal share of what is let through, measured in tokens.

Self-clocked fair queueing (Golestani, INFOCOM 1994): an item's tag is its tenant's last tag, or that of the item that
was let through last if it is later, plus the item's tokens; the smallest tag goes first. A tenant with many or large
requests waits for itself, not for others.
"""

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items of many tenants. Taking one out of turn is free; it is dropped when it comes up."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._waiting: dict[Item, str] = {}
        self._tags: dict[str, float] = {}
        self._lengths: dict[str, int] = {}
        self._now = 0.0
        self._order = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, item: Item) -> bool:
        return item in self._waiting

    def length_of(self, tenant: str) -> int:
        """Return how many items of a tenant wait."""
        return self._lengths.get(tenant, 0)

    def push(self, tenant: str, tokens: int, item: Item) -> None:
        """Let an item wait."""
        tag = max(self._now, self._tags.get(tenant, 0.0)) + tokens
        self._tags[tenant] = tag
        self._order += 1
        self._waiting[item] = tenant
        self._lengths[tenant] = self._lengths.get(tenant, 0) + 1
        heappush(self._heap, (tag, self._order, item))

    def pop(self) -> Item | None:
        """Take out the item whose turn it is; None when nothing waits."""
        while self._heap:
            tag, _, item = heappop(self._heap)
            if item in self._waiting:
                self._now = tag
                self.discard(item)
                return item
        return None

    def discard(self, item: Item) -> None:
        """Take an item out of turn; nothing happens when it does not wait."""
        tenant = self._waiting.pop(item, None)
        if tenant is None:
            return
        self._lengths[tenant] -= 1
        if self._lengths[tenant] == 0:
            del self._lengths[tenant]
            if self._tags[tenant] <= self._now:
                del self._tags[tenant]
        if not self._waiting:
            self._heap.clear()
            self._tags.clear()
            self._now = 0.0
        elif len(self._heap) > 2 * len(self._waiting) + 64:
            self._heap = sorted(entry for entry in self._heap if entry[2] in self._waiting)
