"""The prefix index and the prompt hash in plain Python: what the native ones are tested against, and their stand-in.

It says in the fewest lines what the index does. It is correct and slow (hundreds of microseconds a prompt), and serves
where the extension could not be built. The hashes are others than the native ones: a seed never leaves its process.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from itertools import takewhile

import msgspec

from router.core.errors import PrefixIndexFault

MAX_INSTANCES = 1024
MAX_BLOCKS = 32_000_000
DEFAULT_MAX_BLOCKS = 4_000_000
_BYTES_PER_ENTRY = 250
"""About what one block at one instance costs here: a dictionary entry, a set, an int and a linked-list node."""


class _Residency(msgspec.Struct):
    """The blocks of one instance, least recently used first: along a chain, children stand before their parents."""

    capacity_blocks: int
    blocks: OrderedDict[int, None]
    exact: bool = False
    """True once events said what is resident: then a block may be there without its parent."""


class ReferencePrefixIndex:
    """See :class:`router.core.prefix.PrefixIndex`."""

    def __init__(self, max_blocks: int = DEFAULT_MAX_BLOCKS) -> None:
        if not 1 <= max_blocks <= MAX_BLOCKS:
            raise ValueError(f"max_blocks is {max_blocks}, but must be 1 to {MAX_BLOCKS}")
        self._max_blocks = max_blocks
        self._residencies: list[_Residency | None] = []
        self._holders: dict[int, set[int]] = {}
        self._entries = 0
        self._evictions = 0

    @property
    def blocks(self) -> int:
        """Distinct blocks that are resident anywhere."""
        return len(self._holders)

    @property
    def entries(self) -> int:
        """Blocks summed over instances: what ``capacity`` bounds."""
        return self._entries

    @property
    def capacity(self) -> int:
        """The most entries that are ever kept."""
        return self._max_blocks

    @property
    def memory_bytes(self) -> int:
        """Estimated memory in bytes."""
        return self._entries * _BYTES_PER_ENTRY

    @property
    def evictions(self) -> int:
        """Entries that had to make room, since the beginning."""
        return self._evictions

    def add_instance(self, capacity_blocks: int) -> int:
        """Give a new instance the smallest free slot."""
        _check_capacity(capacity_blocks)
        slot = next((i for i, r in enumerate(self._residencies) if r is None), len(self._residencies))
        if slot >= MAX_INSTANCES:
            raise ValueError(f"the index holds {MAX_INSTANCES} instances at most")
        if slot == len(self._residencies):
            self._residencies.append(None)
        self._residencies[slot] = _Residency(capacity_blocks, OrderedDict())
        return slot

    def remove_instance(self, slot: int) -> None:
        """Forget an instance and free its slot."""
        self.clear(slot)
        self._residencies[slot] = None
        while self._residencies and self._residencies[-1] is None:
            self._residencies.pop()

    def clear(self, slot: int) -> None:
        """Forget every block of an instance."""
        residency = self._at(slot)
        for block in list(residency.blocks):
            self._drop(slot, block)
        residency.exact = False

    def set_capacity(self, slot: int, capacity_blocks: int) -> None:
        """Change an instance's capacity; what is too much is evicted at once."""
        residency = self._at(slot)
        _check_capacity(capacity_blocks)
        residency.capacity_blocks = capacity_blocks
        while len(residency.blocks) > capacity_blocks:
            self._evict(slot)

    def insert(self, slot: int, chain: bytes) -> None:
        """Expect a chain at an instance: touch what is there, add the rest, evict the least recently used leaves."""
        self._at(slot)
        self._touch(slot, list(_unpack(chain)))

    def match(self, chain: bytes) -> list[int]:
        """Return, by slot, how many leading blocks of the chain each instance holds."""
        depths = [0] * len(self._residencies)
        alive = set(range(len(depths)))
        for depth, block in enumerate(_unpack(chain), start=1):
            alive &= self._holders.get(block, set())
            if not alive:
                break
            for slot in alive:
                depths[slot] = depth
        return depths

    def resident(self, slot: int) -> int:
        """Return how many blocks an instance holds."""
        return len(self._at(slot).blocks)

    def store(self, slot: int, hashes: bytes) -> None:
        """Take in an engine's own word that it stored blocks; from now on the slot's residency is exact."""
        residency = self._at(slot)
        blocks = list(_unpack(hashes))
        residency.exact = True
        self._touch(slot, blocks)

    def discard(self, slot: int, hashes: bytes) -> None:
        """Take in an engine's own word that it removed blocks; from now on the slot's residency is exact."""
        residency = self._at(slot)
        blocks = list(_unpack(hashes))
        residency.exact = True
        for block in blocks:
            if block in residency.blocks:
                self._drop(slot, block)

    def check_integrity(self) -> None:
        """Compare everything that is kept twice.

        :raises PrefixIndexFault: naming the first contradiction.
        """
        holders: dict[int, set[int]] = {}
        for slot, residency in enumerate(self._residencies):
            if residency is None:
                continue
            if len(residency.blocks) > residency.capacity_blocks:
                raise PrefixIndexFault(f"slot {slot} holds {len(residency.blocks)} of {residency.capacity_blocks}")
            for block in residency.blocks:
                holders.setdefault(block, set()).add(slot)
        if holders != self._holders:
            raise PrefixIndexFault("the holders of blocks and the blocks of instances disagree")
        if self._entries != sum(map(len, holders.values())) or self._entries > self._max_blocks:
            raise PrefixIndexFault(f"{self._entries} entries are counted, the most is {self._max_blocks}")

    def _touch(self, slot: int, blocks: list[int]) -> None:
        residency = self._at(slot)
        del blocks[min(residency.capacity_blocks, self._max_blocks) :]
        for block in reversed(blocks):
            if block not in residency.blocks:
                residency.blocks[block] = None
                self._holders.setdefault(block, set()).add(slot)
                self._entries += 1
            residency.blocks.move_to_end(block)
        while len(residency.blocks) > residency.capacity_blocks:
            self._evict(slot)
        while self._entries > self._max_blocks:
            self._evict(self._richest(slot, len(set(blocks))))

    def _richest(self, inserting: int, kept: int) -> int:
        """The slot with the most blocks to spare; ``kept`` blocks of the inserting one are not."""

        def spare(slot: int) -> int:
            residency = self._residencies[slot]
            return 0 if residency is None else len(residency.blocks) - (kept if slot == inserting else 0)

        return max(range(len(self._residencies)), key=spare)

    def _evict(self, slot: int) -> None:
        self._drop(slot, next(iter(self._at(slot).blocks)))
        self._evictions += 1

    def _drop(self, slot: int, block: int) -> None:
        del self._at(slot).blocks[block]
        self._entries -= 1
        holders = self._holders[block]
        holders.remove(slot)
        if not holders:
            del self._holders[block]

    def _at(self, slot: int) -> _Residency:
        residency = self._residencies[slot] if 0 <= slot < len(self._residencies) else None
        if residency is None:
            raise IndexError(f"no instance in slot {slot}")
        return residency


def _unpack(chain: bytes) -> Iterator[int]:
    if len(chain) % 8:
        raise ValueError(f"a chain is whole 8-byte block hashes, but this one has {len(chain)} bytes")
    return (block for (block,) in struct.iter_unpack("<Q", chain))


def _check_capacity(capacity_blocks: int) -> None:
    if capacity_blocks < 1:
        raise ValueError(f"capacity_blocks is {capacity_blocks}, but must be at least 1")


def hash_chain(seed: bytes, key: bytes, text: bytes | memoryview, block_bytes: int, max_blocks: int) -> bytes:
    """Hash with keyed BLAKE2b: the hash of a block is the digest of the key and the text up to its end."""
    view = memoryview(text)
    state = blake2b(len(key).to_bytes(8, "little") + key, digest_size=8, key=seed)
    hashes = []
    for block in range(min(len(view) // block_bytes, max_blocks)):
        state.update(view[block * block_bytes : (block + 1) * block_bytes])
        hashes.append(state.copy().digest())
    return b"".join(hashes)


def common_blocks(first: bytes, second: bytes) -> int:
    """Return how many leading hashes two chains share."""
    pairs = zip(_unpack(first), _unpack(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def hash_tokens(seed: bytes, parent: int, tokens: bytes | memoryview, block_bytes: int) -> bytes:
    """Hash with keyed BLAKE2b: each block's hash is of its parent's hash and its bytes."""
    view = memoryview(tokens)
    last = parent.to_bytes(8, "little")
    hashes = []
    for start in range(0, len(view) - block_bytes + 1, block_bytes):
        last = blake2b(last + view[start : start + block_bytes], digest_size=8, key=seed).digest()
        hashes.append(last)
    return b"".join(hashes)
