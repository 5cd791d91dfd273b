"""Residency by the engines' own word: token blocks of the instances that tell their KV events.

It stands beside the prefix index of the fleet, which holds what is *expected* of every instance in blocks of text. An
instance is followed from :meth:`EventResidency.follow` to :meth:`EventResidency.leave`. Nothing here costs anything
while nobody is followed.
"""

from collections.abc import Sequence

import msgspec

from router.core.prefix import PrefixIndex
from router.core.request import Request
from router.state.known_prefix import KnownPrefix

DEFAULT_MAX_BLOCKS = 4_000_000


class _Followed(msgspec.Struct, gc=False):
    slot: int
    """Of the instance, in the fleet."""
    token_slot: int
    """Of its token blocks, in the index here."""
    block_tokens: int


class EventResidency:
    """Owner of the token index. Slots are those of the fleet."""

    def __init__(self, max_blocks: int = DEFAULT_MAX_BLOCKS) -> None:
        self._max_blocks = max_blocks
        self._index = PrefixIndex(max_blocks=1)
        self._followed: dict[int, _Followed] = {}

    def __bool__(self) -> bool:
        return bool(self._followed)

    def __contains__(self, slot: int) -> bool:
        return slot in self._followed

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Tokens a block of the instances that are followed, the smallest first."""
        return tuple(sorted({followed.block_tokens for followed in self._followed.values()}))

    @property
    def blocks(self) -> int:
        """Blocks of all followed instances."""
        return self._index.entries

    def blocks_at(self, slot: int) -> int:
        """Return how many blocks an instance told that it holds; 0 when it is not followed."""
        followed = self._followed.get(slot)
        return 0 if followed is None else self._index.resident(followed.token_slot)

    def block_tokens(self, slot: int) -> int | None:
        """Return the tokens in a block of an instance; None when it is not followed."""
        followed = self._followed.get(slot)
        return None if followed is None else followed.block_tokens

    def follow(self, slot: int, block_tokens: int) -> None:
        """Believe an instance's events from now on; again with another block size: what it told before is void."""
        known = self._followed.get(slot)
        if known is not None:
            if known.block_tokens == block_tokens:
                return
            self.leave(slot)
        if not self._followed:
            self._index = PrefixIndex(max_blocks=self._max_blocks)
        token_slot = self._index.add_instance(self._max_blocks)
        self._followed[slot] = _Followed(slot, token_slot, block_tokens)

    def leave(self, slot: int) -> None:
        """Follow an instance no longer."""
        followed = self._followed.pop(slot, None)
        if followed is not None:
            self._index.remove_instance(followed.token_slot)

    def change(self, slot: int, stored: bytes, removed: bytes, cleared: bool) -> bool:
        """Apply what an instance told, the clearing first; return whether it lost anything by the clearing."""
        followed = self._followed.get(slot)
        if followed is None:
            return False
        lost = False
        if cleared:
            lost = self._index.resident(followed.token_slot) > 0
            self._index.clear(followed.token_slot)
        if removed:
            self._index.discard(followed.token_slot, removed)
        if stored:
            self._index.store(followed.token_slot, stored)
        return lost

    def hits(self, request: Request, known: KnownPrefix, matched: Sequence[int]) -> dict[int, int]:
        """Return, by slot, the tokens of a prompt that followed instances hold.

        :param matched: by slot, the text blocks of the prompt that each instance is expected to hold.
        """
        depths = {size: self._index.match(chain) for size, chain in known.chains.items()}
        hits: dict[int, int] = {}
        for slot, followed in self._followed.items():
            size = followed.block_tokens
            if size not in depths:
                continue
            hit = depths[size][followed.token_slot] * size
            if hit + size > known.tokens and matched[slot] > known.text_blocks:
                continue  # all that is known is there, and more was booked: the estimate counts
            hits[slot] = min(hit, (request.prompt_tokens - 1) // size * size)
        return hits
