"""What one engine process holds, by its own account.

The engine tells a block once for each physical copy and once for each copy it drops, per medium (GPU, CPU, disk). A
block is gone when its last copy in the last medium is gone. What changes for a reader, a block that appears or that
disappears altogether, is returned under *our* hashes (:mod:`router.core.prefix.token_chain`).

Only attention over the whole context makes a prefix reusable block by block; events of other cache groups (sliding
windows, state spaces) say nothing about that and are counted but not followed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from router.core.prefix.token_chain import HASH_BYTES, TokenHasher, pack_hashes, pack_tokens
from router.kvevents.events import AllBlocksCleared, BlocksRemoved, BlocksStored, EngineHash, EventBatch

DEFAULT_MEDIUM = "GPU"
DEFAULT_MAX_BLOCKS = 4_000_000
_FOLLOWED = frozenset({None, "full_attention", "mla_attention"})


@dataclass(slots=True)
class Changes:
    """What a batch changed, under our hashes: first everything was forgotten (or not), then blocks came and went.

    Where a block did both, only the last word is in ``present``.
    """

    cleared: bool = False
    present: dict[int, bool] = field(default_factory=dict)

    @property
    def stored(self) -> bytes:
        """Blocks that are there now and perhaps were not before, packed."""
        return pack_hashes([block for block, there in self.present.items() if there])

    @property
    def removed(self) -> bytes:
        """Blocks that are gone now and perhaps were there before, packed."""
        return pack_hashes([block for block, there in self.present.items() if not there])


@dataclass(slots=True)
class ResidencyCounters:
    """What was not as it should be. None of it stops the following; each of it is visible."""

    orphans: int = 0
    """Blocks stored after a parent that is not known (their prefix cannot be hashed)."""
    unknown_removals: int = 0
    """Removals of blocks that were not resident."""
    other_groups: int = 0
    """Events of cache groups that are not followed."""
    overflows: int = 0
    """Times everything was forgotten because there were more blocks than can be."""
    bad_tokens: int = 0
    """Events with token ids that are none."""


class _Block(msgspec.Struct, gc=False):
    """One block, and its copies by medium. There are very many of these, so the collector does not look at them."""

    chain: int | None = None
    """Our hash; None for an orphan."""
    main_copies: int = 0
    other_copies: dict[str, int] | None = None

    @property
    def copies(self) -> dict[str, int]:
        main = {DEFAULT_MEDIUM: self.main_copies} if self.main_copies else {}
        return main | (self.other_copies or {})

    def add(self, medium: str) -> None:
        """Count one more copy."""
        if medium == DEFAULT_MEDIUM:
            self.main_copies += 1
        else:
            self.other_copies = self.other_copies or {}
            self.other_copies[medium] = self.other_copies.get(medium, 0) + 1

    def drop(self, medium: str) -> bool:
        """Count one copy less; False when there is none in that medium."""
        if medium == DEFAULT_MEDIUM:
            if self.main_copies == 0:
                return False
            self.main_copies -= 1
            return True
        others = self.other_copies or {}
        if medium not in others:
            return False
        others[medium] -= 1
        if others[medium] == 0:
            del others[medium]
        return True

    @property
    def gone(self) -> bool:
        """Whether no medium holds a copy."""
        return not self.main_copies and not self.other_copies


class EngineResidency:
    """The blocks of one engine process (one data-parallel rank); at most ``max_blocks`` are kept."""

    def __init__(self, hasher: TokenHasher, max_blocks: int = DEFAULT_MAX_BLOCKS) -> None:
        self.counters = ResidencyCounters()
        self.block_tokens: int | None = None
        """Tokens in a block, as last told."""
        self._hasher = hasher
        self._max_blocks = max_blocks
        self._blocks: dict[EngineHash, _Block] = {}
        self._holders: dict[int, int] = {}
        self._ignored_groups: set[int | None] = set()

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def chains(self) -> set[int]:
        """Our hashes of everything resident."""
        return set(self._holders)

    @property
    def parents_first(self) -> list[int]:
        """Our hashes of everything resident, in the order in which they came."""
        return list(self._holders)

    def holds(self, chain: int) -> bool:
        """Tell whether a block (under our hash) is resident."""
        return chain in self._holders

    def matched(self, chain: bytes) -> int:
        """Return how many leading blocks of a packed chain are resident."""
        for depth in range(len(chain) // HASH_BYTES):
            block = int.from_bytes(chain[depth * HASH_BYTES : (depth + 1) * HASH_BYTES], "little")
            if block not in self._holders:
                return depth
        return len(chain) // HASH_BYTES

    def copies(self, block: EngineHash) -> dict[str, int]:
        """Return how many copies of a block each medium holds; empty when it is gone."""
        held = self._blocks.get(block)
        return held.copies if held is not None else {}

    def apply(self, batch: EventBatch) -> Changes:
        """Take in a batch and return what changed."""
        changes = Changes()
        for event in batch.events:
            if isinstance(event, BlocksStored):
                self._store(event, changes)
            elif isinstance(event, BlocksRemoved):
                self._remove(event, changes)
            elif isinstance(event, AllBlocksCleared):
                self._clear(changes)
        return changes

    def clear(self) -> Changes:
        """Forget everything, as after a restart or a gap that cannot be filled."""
        changes = Changes()
        self._clear(changes)
        return changes

    def check_integrity(self) -> None:
        """Recount.

        :raises ValueError: on the first contradiction.
        """
        holders: dict[int, int] = {}
        for block in self._blocks.values():
            if block.gone or min(block.copies.values()) < 1:
                raise ValueError(f"a block is kept with the copies {block.copies}")
            if block.chain is not None:
                holders[block.chain] = holders.get(block.chain, 0) + 1
        if holders != self._holders:
            raise ValueError("the holders of our hashes are miscounted")

    def _store(self, event: BlocksStored, changes: Changes) -> None:
        if event.attention not in _FOLLOWED:
            self._ignored_groups.add(event.group)
        if event.group in self._ignored_groups:
            self.counters.other_groups += 1
            return
        self.block_tokens = event.block_tokens
        if len(self._blocks) + len(event.hashes) > self._max_blocks:
            self.counters.overflows += 1
            self._clear(changes)
        medium = event.medium or DEFAULT_MEDIUM
        for name, chain in zip(event.hashes, self._chains_of(event), strict=True):
            block = self._blocks.get(name)
            if block is None or (block.chain is None and chain is not None):
                block = self._enter(name, chain, block, changes)
            block.add(medium)

    def _enter(self, name: EngineHash, chain: int | None, orphan: _Block | None, changes: Changes) -> _Block:
        """Add a block, or give an orphan its hash now that its prefix is known."""
        block = orphan or _Block()
        block.chain = chain
        self._blocks[name] = block
        if chain is not None:
            self._holders[chain] = self._holders.get(chain, 0) + 1
            changes.present[chain] = True
        return block

    def _chains_of(self, event: BlocksStored) -> Iterable[int | None]:
        parent = self._parent_chain(event)
        if parent is None:
            self.counters.orphans += len(event.hashes)
            return [None] * len(event.hashes)
        try:
            packed = pack_tokens(event.token_ids)
        except ValueError:
            self.counters.bad_tokens += 1
            return [None] * len(event.hashes)
        if not event.extra_keys:
            return self._hasher.extend(parent, packed, event.block_tokens)
        extra = tuple(tuple(key for key in keys if key != event.adapter) for keys in event.extra_keys)
        return self._hasher.extend(parent, packed, event.block_tokens, extra)

    def _parent_chain(self, event: BlocksStored) -> int | None:
        if event.parent is None:
            return self._hasher.root(event.adapter)
        parent = self._blocks.get(event.parent)
        return None if parent is None else parent.chain

    def _remove(self, event: BlocksRemoved, changes: Changes) -> None:
        if event.group in self._ignored_groups:
            self.counters.other_groups += 1
            return
        medium = event.medium or DEFAULT_MEDIUM
        for name in event.hashes:
            block = self._blocks.get(name)
            if block is None or not block.drop(medium):
                self.counters.unknown_removals += 1
            elif block.gone:
                self._leave(name, block, changes)

    def _leave(self, name: EngineHash, block: _Block, changes: Changes) -> None:
        del self._blocks[name]
        if block.chain is None:
            return
        holders = self._holders[block.chain] - 1
        if holders:
            self._holders[block.chain] = holders
        else:
            del self._holders[block.chain]
            changes.present[block.chain] = False

    def _clear(self, changes: Changes) -> None:
        self._blocks.clear()
        self._holders.clear()
        changes.present.clear()
        changes.cleared = True
