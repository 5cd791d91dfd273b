"""From a prompt to its chain of block hashes.

A chain is ``bytes``: one 64-bit hash per whole block, each standing for the key and *everything* up to the end of its
block, so that equal hashes mean equal prefixes. Every hash is keyed by a secret seed of the process: without it nobody
can write two prompts that collide.
"""

import struct
from collections.abc import Callable, Iterable

from router.core.prefix import implementation

MAX_SEED_BITS = 128
DEFAULT_BLOCK_BYTES = 64
DEFAULT_MAX_BLOCKS = 65_536
"""4 MB of text in blocks of 64 bytes: longer than any context window."""

HashChain = Callable[[bytes, bytes, bytes | memoryview, int, int], bytes]
"""(seed of 16 bytes, key, text, bytes a block, most blocks) -> chain."""


class PromptHasher:
    """Hashes prompts in blocks of ``block_bytes``, a multiple of 8; what is beyond ``max_blocks`` is left out.

    ``seed`` is a secret number of up to 128 bits.
    """

    __slots__ = ("_hash_chain", "_max_blocks", "_seed", "block_bytes")

    def __init__(
        self,
        seed: int,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        max_blocks: int = DEFAULT_MAX_BLOCKS,
        hash_chain: HashChain = implementation.hash_chain,
    ) -> None:
        if not 0 <= seed < 1 << MAX_SEED_BITS:
            raise ValueError(f"the seed must be a number of at most {MAX_SEED_BITS} bits, and not negative")
        if block_bytes < 8 or block_bytes % 8:
            raise ValueError(f"block_bytes is {block_bytes}, but must be a positive multiple of 8")
        if max_blocks < 1:
            raise ValueError(f"max_blocks is {max_blocks}, but must be at least 1")
        self.block_bytes = block_bytes
        self._max_blocks = max_blocks
        self._seed = seed.to_bytes(MAX_SEED_BITS // 8, "little")
        self._hash_chain = hash_chain

    def chain(self, key: bytes, text: bytes | memoryview) -> bytes:
        """Return the chain of the whole blocks of ``text``; ``key`` is what :func:`prefix_key` gives."""
        return self._hash_chain(self._seed, key, text, self.block_bytes, self._max_blocks)


def prefix_key(model: str, adapter: str | None = None, cache_salt: str | None = None) -> bytes:
    """Join what separates caches, so that no two different triples give the same bytes."""
    return b"".join(_framed(part) for part in (model, adapter, cache_salt))


def pack(ids: Iterable[int]) -> bytes:
    """Pack ids that are chain hashes already (0 <= id < 2**64), such as those of public traces."""
    listed = list(ids)
    return struct.pack(f"<{len(listed)}Q", *listed)


def _framed(part: str | None) -> bytes:
    if part is None:
        return b"\x00"
    encoded = part.encode("utf-8", "surrogatepass")
    return b"\x01" + struct.pack("<Q", len(encoded)) + encoded
