"""Preloading: the hottest shared prefixes are sent to an instance that lacks them, before users' requests need them.

A model of what the control plane does from the outside: it keeps a bounded store of the prefixes that different
sessions had in common lately, and sends them to one instance as requests of one output token, a few at a time. They
are booked there like any request, and counted apart from users' requests.
"""

from collections.abc import Callable

import msgspec

from router.core.hotspot.prefix_class import HASH_BYTES
from router.core.hotspot.space_saving import ClassCount, SpaceSaving

STORE_CAPACITY = 64
_KEY_TOKENS = 512


class Preload(msgspec.Struct, frozen=True, kw_only=True):
    """How instances that join or were restarted are filled."""

    most_prefixes: int = 32
    """How many of the hottest prefixes are sent (>= 1)."""
    at_once: int = 2
    """How many of them are under way at one time (>= 1)."""
    budget_tokens: int = 200_000
    """Prompt tokens that are sent to one instance at most."""


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

    def tokens(self, chain: bytes) -> int:
        """Return the length of a chain in tokens."""
        return len(chain) // HASH_BYTES * self._block_tokens

    def _open(self, prefix: bytes) -> ClassCount:
        count = self._sketch.open(prefix, "")
        self._shared = {key: shared for key, shared in self._shared.items() if key in self._sketch.counts}
        return count


class Filling:
    """What is still to be sent to one instance."""

    def __init__(self, rule: Preload, store: PrefixStore) -> None:
        self._store = store
        self._chains = store.hottest(rule.most_prefixes)
        self._budget_tokens = rule.budget_tokens

    def next(self, resident_blocks: Callable[[bytes], int]) -> bytes | None:
        """Return the next prefix that the instance lacks, while the budget lasts.

        :param resident_blocks: says how many leading blocks of a chain the instance is expected to hold.
        """
        while self._chains:
            chain = self._chains.pop(0)
            tokens = self._store.tokens(chain)
            if tokens <= self._budget_tokens and resident_blocks(chain) < len(chain) // HASH_BYTES:
                self._budget_tokens -= tokens
                return chain
        return None


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
