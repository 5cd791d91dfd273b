"""Preloading: hot prefixes are sent to instances that lack them, before users' requests need them.

A model of what the control plane does from the outside: it keeps a bounded store of the prefixes that different
sessions had in common lately, and sends them to instances as requests of one output token, a few at a time. They are
booked there like any request, and counted apart from users' requests.
"""

from collections import deque
from collections.abc import Callable, Iterable

from router.core.hotspot.prefix_class import HASH_BYTES
from router.core.hotspot.space_saving import ClassCount, SpaceSaving
from router.core.preload_budget import PreloadBudget

STORE_CAPACITY = 64
_KEY_TOKENS = 512


class PrefixStore:
    """The most frequent prefixes of a stream of prompts, each as long as what its last sessions had in common."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._depth = max(1, _KEY_TOKENS // block_tokens)
        self._sketch = SpaceSaving(STORE_CAPACITY)
        self._shared: dict[bytes, tuple[bytes, str | None, bool]] = {}
        """By class key: what was common so far, the last session, and whether two sessions were seen."""

    def note(self, chain: bytes, session: str | None) -> None:
        """Take in the prompt of a request that arrived."""
        if not chain:
            return
        prefix = chain[: self._depth * HASH_BYTES]
        key = prefix[-HASH_BYTES:]
        count = self._sketch.counts.get(key) or self._open(prefix)
        count.requests += 1
        shared, last, common = self._shared.get(key, (chain, session, False))
        if session is None or session != last:
            shared, common = common_prefix(shared, chain), key in self._shared
        self._shared[key] = (shared, session, common)

    def hottest(self, most: int) -> list[bytes]:
        """Return the chains of the most frequent prefixes that different sessions shared, hottest first."""
        counts = self._sketch.counts
        keys = sorted((key for key in counts if self._shared[key][2]), key=lambda key: -counts[key].requests)
        return [self._shared[key][0] for key in keys[:most]]

    def chain_of(self, key: bytes) -> bytes | None:
        """Return what the sessions of a class share; None before two of them were seen."""
        shared, _, common = self._shared.get(key, (None, None, False))
        return shared if common else None

    def tokens(self, chain: bytes) -> int:
        """Return the length of a chain in tokens."""
        return len(chain) // HASH_BYTES * self._block_tokens

    def _open(self, prefix: bytes) -> ClassCount:
        count = self._sketch.open(prefix, "")
        self._shared = {key: shared for key, shared in self._shared.items() if key in self._sketch.counts}
        return count


class Preloader:
    """Which prefix goes to which instance next. Instances are known by their place.

    :param send: sends a chain to a place under a number; False when there is no need, or nobody takes it.
    """

    def __init__(self, budget: PreloadBudget, store: PrefixStore, send: Callable[[int, bytes, int], bool]) -> None:
        self._budget = budget
        self._store = store
        self._send = send
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._under_way: dict[int, tuple[int, bytes]] = {}
        self._numbers = 0

    def fill(self, place: int) -> None:
        """Send the hottest prefixes to an instance that has none, as far as the budget reaches."""
        left = self._budget.tokens
        for chain in self._store.hottest(self._budget.most_prefixes):
            tokens = self._store.tokens(chain)
            if tokens <= left:
                left -= tokens
                self._waiting.append((place, chain))
        self._go_on()

    def widen(self, key: bytes, places: Iterable[int]) -> None:
        """Send the prefix of a hot class to the instances that lack it, in this order."""
        chain = self._store.chain_of(key)
        if chain is None:
            return
        known = {place for place, sent in (*self._waiting, *self._under_way.values()) if _same_class(sent, chain)}
        self._waiting.extend((place, chain) for place in places if place not in known)
        self._go_on()

    def ended(self, number: int) -> None:
        """Note that a preload has ended, and send the next."""
        del self._under_way[number]
        self._go_on()

    def lost(self, number: int) -> None:
        """Note that a preload was lost with its instance."""
        del self._under_way[number]

    def _go_on(self) -> None:
        while self._waiting and len(self._under_way) < self._budget.at_once:
            place, chain = self._waiting.popleft()
            self._numbers += 1
            self._under_way[self._numbers] = (place, chain)
            if not self._send(place, chain, self._numbers):
                del self._under_way[self._numbers]


def common_prefix(one: bytes, other: bytes) -> bytes:
    """Return the blocks that two chains have in common; equal hashes mean equal prefixes, so halving finds the end."""
    low, high = 0, min(len(one), len(other)) // HASH_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        end, start = middle * HASH_BYTES, (middle - 1) * HASH_BYTES
        if one[start:end] == other[start:end]:
            low = middle
        else:
            high = middle - 1
    return one[: low * HASH_BYTES]


def _same_class(one: bytes, other: bytes) -> bool:
    """Say whether two chains begin alike; what a class has in common may have become shorter meanwhile."""
    least = min(len(one), len(other))
    return one[:least] == other[:least]
