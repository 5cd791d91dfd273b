"""Chained hashes of KV blocks: equal hash, equal tokens from the first one on.

The seed differs from engine to engine, as it does in vLLM: whoever compares hashes of two engines finds out at once.
Hashes are packed as the engine model takes them, eight bytes each, little-endian.
"""

import struct

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from router.engine.tokens import TOKEN_BYTES

HASH_BYTES = 8


def chain_seed(engine_seed: int, adapter: str | None, cache_salt: str | None) -> int:
    """Return the hash before the first block: adapter and salt change every block that follows."""
    if adapter is None and cache_salt is None:
        return engine_seed
    return xxh3_64_intdigest(xxh3_64_digest(_bytes(adapter)) + xxh3_64_digest(_bytes(cache_salt)), engine_seed)


def block_chain(packed: bytes, block_tokens: int, seed: int) -> bytes:
    """Return one packed hash for each full block of ``block_tokens`` tokens."""
    size = block_tokens * TOKEN_BYTES
    view = memoryview(packed)
    hashes = []
    parent = seed
    for start in range(0, len(packed) - size + 1, size):
        parent = xxh3_64_intdigest(view[start : start + size], parent)
        hashes.append(parent)
    return struct.pack(f"<{len(hashes)}Q", *hashes)


def hashes_of(chain: bytes) -> list[int]:
    """Return the hashes of a packed chain as unsigned 64-bit numbers."""
    return list(struct.unpack(f"<{len(chain) // HASH_BYTES}Q", chain))


def _bytes(name: str | None) -> bytes:
    return (name or "").encode()
