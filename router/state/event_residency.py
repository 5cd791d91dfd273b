"""Residency by the engines' own word: token blocks of the instances that tell their KV events.

It stands beside the prefix index of the fleet, which holds what is *expected* of every instance in blocks of text. An
instance is followed from :meth:`EventResidency.follow` to :meth:`EventResidency.leave`. Nothing here costs anything
while nobody is followed.
"""

from collections.abc import Sequence

import msgspec

from router.core.prefix import PrefixIndex
from router.core.request import Request
from router.core.situation import Hit
from router.state.booking import Booking
from router.state.expected_soon import ExpectedSoon
from router.state.known_prefix import KnownPrefix
from router.state.text_marks import BLOCK_BYTES

DEFAULT_MAX_BLOCKS = 4_000_000


class _Followed(msgspec.Struct):
    token_slot: int
    """Of its token blocks, in the index here."""
    block_tokens: int
    soon: ExpectedSoon


class EventResidency:
    """Owner of the token index. Slots are those of the fleet."""

    def __init__(self, max_blocks: int = DEFAULT_MAX_BLOCKS) -> None:
        self._max_blocks = max_blocks
        self._index: PrefixIndex | None = None
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
        return 0 if self._index is None else self._index.entries

    @property
    def memory_bytes(self) -> int:
        """Memory of the token index, in bytes."""
        return 0 if self._index is None else self._index.memory_bytes

    def blocks_at(self, slot: int) -> int:
        """Return how many blocks an instance told that it holds; 0 when it is not followed."""
        followed = self._followed.get(slot)
        return 0 if followed is None or self._index is None else self._index.resident(followed.token_slot)

    def block_tokens(self, slot: int) -> int | None:
        """Return the tokens in a block of an instance; None when it is not followed."""
        followed = self._followed.get(slot)
        return None if followed is None else followed.block_tokens

    def follow(self, slot: int, block_tokens: int) -> None:
        """Believe an instance's events from now on; with another block size, what it told before is void."""
        known = self._followed.get(slot)
        if known is not None:
            if known.block_tokens == block_tokens:
                return
            self.leave(slot)
        if self._index is None:
            self._index = PrefixIndex(max_blocks=self._max_blocks)
        self._followed[slot] = _Followed(self._index.add_instance(self._max_blocks), block_tokens, ExpectedSoon())

    def leave(self, slot: int) -> None:
        """Follow an instance no longer; with the last one the index goes."""
        followed = self._followed.pop(slot, None)
        if followed is None or self._index is None:
            return
        self._index.remove_instance(followed.token_slot)
        if not self._followed:
            self._index = None

    def booked(self, slot: int, chain: bytes, booking: Booking) -> None:
        """Expect a booking's prompt at an instance, until its events have had time to come."""
        followed = self._followed.get(slot)
        if followed is not None:
            followed.soon.add(chain, booking)

    def change(self, slot: int, stored: bytes, removed: bytes, cleared: bool) -> bool:
        """Apply what an instance told, the clearing first; return whether it lost anything by the clearing."""
        followed = self._followed.get(slot)
        if followed is None or self._index is None:
            return False
        lost = False
        if cleared:
            lost = self._index.resident(followed.token_slot) > 0
            self._index.clear(followed.token_slot)
            followed.soon.clear()
        if removed:
            self._index.discard(followed.token_slot, removed)
        if stored:
            self._index.store(followed.token_slot, stored)
        return lost

    def hits(
        self, request: Request, chain: bytes, known: KnownPrefix, expected: Sequence[int], now_s: float
    ) -> dict[int, Hit]:
        """Return, by slot, the tokens of a prompt that followed instances hold.

        The engine's word counts, but for what it cannot have told yet: what was booked there since the known part was
        learnt, and prompts that it is only just computing.

        :param chain: hashes of the prompt's blocks of text.
        :param expected: by slot, how many of these are expected there by bookings.
        """
        if self._index is None:
            return {}
        asked = _Asked(request, chain, known, now_s)
        depths = {size: self._index.match(tokens) for size, tokens in known.chains.items()}
        booked_tokens: dict[int, int] = {}
        hits: dict[int, Hit] = {}
        for slot, followed in self._followed.items():
            by_slot = depths.get(followed.block_tokens)
            if by_slot is None:
                continue  # nothing was learnt yet in blocks of this size
            told, booked = by_slot[followed.token_slot] * followed.block_tokens, expected[slot]
            most = booked_tokens.get(booked)
            if most is None:
                most = booked_tokens[booked] = asked.tokens_of(booked)
            if told < most:
                most = asked.untold_tokens(followed, told, booked)
            hits[slot] = asked.hit(told, most, followed.block_tokens)
        return hits


class _Asked:
    """One prompt, while it is asked who holds how much of it."""

    __slots__ = ("_chain", "_hits", "_known", "_now_s", "_request")

    def __init__(self, request: Request, chain: bytes, known: KnownPrefix, now_s: float) -> None:
        self._request = request
        self._chain = chain
        self._known = known
        self._now_s = now_s
        self._hits: dict[tuple[int, int, int], Hit] = {}

    def tokens_of(self, text_blocks: int) -> int:
        """Return about how many tokens so many blocks of the text are."""
        known = self._known
        beyond = max(0.0, text_blocks - known.likely_bytes / BLOCK_BYTES)
        return int(known.tokens_of(text_blocks * BLOCK_BYTES) + beyond * self._request.tokens_per_block)

    def untold_tokens(self, followed: _Followed, told: int, booked: int) -> int:
        """Return how many tokens an instance probably holds that booked more than it told.

        Where it told all that is known, what was booked beyond it counts: that was not learnt yet. Otherwise only what
        it is just computing does; the rest is gone.
        """
        known = self._known
        beyond = booked > known.likely_bytes // BLOCK_BYTES and told + followed.block_tokens > known.likely_tokens
        if beyond:
            return self.tokens_of(booked)
        soon = followed.soon.shared(self._chain, self._now_s)
        return min(soon.most_tokens, self.tokens_of(soon.text_blocks))

    def hit(self, told: int, likely: int, block_tokens: int) -> Hit:
        """Return a hit: whole blocks, at most all tokens but one; instances that are alike share one."""
        key = (told, likely, block_tokens)
        hit = self._hits.get(key)
        if hit is None:
            usable = min(max(told, likely), self._request.prompt_tokens - 1)
            exact = likely <= told <= self._known.tokens
            hit = self._hits[key] = Hit(usable - usable % block_tokens, exact)
        return hit
