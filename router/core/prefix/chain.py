"""From a prompt to its chain of block hashes.

A chain is ``bytes``: one little-endian 64-bit hash per whole block, each standing for the key and *everything* up to the
end of its block, so that equal hashes mean equal prefixes. Every hash is keyed by a secret seed of the process: without
it nobody can write two prompts that collide.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b

MAX_SEED_BITS = 128
DEFAULT_BLOCK_BYTES = 64
DEFAULT_MAX_BLOCKS = 65_536
"""4 MB of text in blocks of 64 bytes: longer than any context window."""


class PromptHasher:
    """Hashes prompts in fixed blocks of ``block_bytes`` (a multiple of 8); what is beyond ``max_blocks`` is left out."""

    __slots__ = ("_max_blocks", "_seed", "block_bytes")

    def __init__(self, seed: int, block_bytes: int = DEFAULT_BLOCK_BYTES, max_blocks: int = DEFAULT_MAX_BLOCKS) -> None:
        if not 0 <= seed < 1 << MAX_SEED_BITS:
            raise ValueError(f"the seed must be a number of at most {MAX_SEED_BITS} bits, and not negative")
        if block_bytes < 8 or block_bytes % 8:
            raise ValueError(f"block_bytes is {block_bytes}, but must be a positive multiple of 8")
        if max_blocks < 1:
            raise ValueError(f"max_blocks is {max_blocks}, but must be at least 1")
        self.block_bytes = block_bytes
        self._max_blocks = max_blocks
        self._seed = seed.to_bytes(MAX_SEED_BITS // 8, "little")

    def chain(self, key: bytes, text: bytes | memoryview) -> bytes:
        """Return the chain of the whole blocks of ``text``; ``key`` is what :func:`prefix_key` gives."""
        return hash_chain(self._seed, key, text, self.block_bytes, self._max_blocks)


def prefix_key(model: str, adapter: str | None = None, cache_salt: str | None = None) -> bytes:
    """Join what separates caches, so that no two different triples give the same bytes."""
    parts = (
        part.encode("utf-8", "surrogatepass") if part is not None else None for part in (model, adapter, cache_salt)
    )
    return b"".join(b"\x00" if part is None else b"\x01" + struct.pack("<I", len(part)) + part for part in parts)


def pack(ids: Iterable[int]) -> bytes:
    """Pack ids that are chain hashes already (0 <= id < 2**64), such as those of public traces."""
    listed = list(ids)
    return struct.pack(f"<{len(listed)}Q", *listed)


def hash_chain(seed: bytes, key: bytes, text: bytes | memoryview, block_bytes: int, max_blocks: int) -> bytes:
    """Hash with BLAKE2b, keyed: the hash of a block is the digest of the key and the text up to its end."""
    view = memoryview(text)
    state = blake2b(len(key).to_bytes(8, "little") + key, digest_size=8, key=seed)
    hashes = []
    for block in range(min(len(view) // block_bytes, max_blocks)):
        state.update(view[block * block_bytes : (block + 1) * block_bytes])
        hashes.append(state.copy().digest())
    return b"".join(hashes)
