"""Our own hashes of token blocks, the same whichever engine holds them.

A block's hash stands for the adapter, every token up to its end, and whatever else was hashed on the way (salt,
images). The seed is a secret of the process: nobody outside can construct two prompts that collide, and hashes never
leave. Splitting a run of blocks over several events does not change its hashes.
"""

from collections.abc import Callable, Sequence
from struct import error as struct_error
from struct import pack, unpack

from xxhash import xxh3_64_intdigest

from router.core.prefix import implementation

TOKEN_BYTES = 4
HASH_BYTES = 8
SEED_BITS = 64

HashTokens = Callable[[bytes, int, bytes | memoryview, int], bytes]
"""(seed of 16 bytes, hash of the parent, packed tokens, bytes a block) -> packed hashes."""


class TokenHasher:
    """Hashes blocks of tokens; ``seed`` is a secret 64-bit number."""

    __slots__ = ("_hash_tokens", "_key", "_seed")

    def __init__(self, seed: int, hash_tokens: HashTokens = implementation.hash_tokens) -> None:
        self._seed = seed
        self._key = seed.to_bytes(SEED_BITS // 8, "little") * 2
        self._hash_tokens = hash_tokens

    def root(self, adapter: str | None) -> int:
        """Return what precedes a prompt's first block."""
        return xxh3_64_intdigest(b"" if adapter is None else b"\x01" + adapter.encode(errors="replace"), self._seed)

    def extend(
        self, parent: int, packed: bytes, block_tokens: int, extra_keys: Sequence[Sequence[str]] = ()
    ) -> tuple[int, ...]:
        """Return the hashes of the whole blocks of ``packed`` tokens that follow ``parent``.

        ``extra_keys`` are each block's further keys, the adapter left out; empty when no block has any.
        """
        size = block_tokens * TOKEN_BYTES
        if not any(extra_keys):
            return unpack_hashes(self._hash_tokens(self._key, parent, packed, size))
        hashes: list[int] = []
        for keys, start in zip(extra_keys, range(0, len(packed) - size + 1, size), strict=False):
            (parent,) = unpack_hashes(
                self._hash_tokens(self._key, self._marked(parent, keys), packed[start : start + size], size)
            )
            hashes.append(parent)
        return tuple(hashes)

    def chain(
        self, packed: bytes, block_tokens: int, adapter: str | None = None, cache_salt: str | None = None
    ) -> bytes:
        """Return a prompt's chain, packed: what its blocks are called in every residency."""
        salt = () if cache_salt is None else (cache_salt,)
        return self._hash_tokens(self._key, self._marked(self.root(adapter), salt), packed, block_tokens * TOKEN_BYTES)

    def _marked(self, parent: int, keys: Sequence[str]) -> int:
        """Return what stands for the parent of a block with keys of its own."""
        return xxh3_64_intdigest(_framed(keys), parent) if keys else parent


def pack_tokens(token_ids: Sequence[int]) -> bytes:
    """Pack token ids, four bytes each.

    :raises ValueError: when one is no unsigned 32-bit number.
    """
    try:
        return pack(f"<{len(token_ids)}I", *token_ids)
    except struct_error as error:
        raise ValueError(f"a token id is no unsigned 32-bit number: {error}") from error


def pack_hashes(hashes: Sequence[int]) -> bytes:
    """Pack our hashes, eight bytes each, as the prefix index takes them."""
    return pack(f"<{len(hashes)}Q", *hashes)


def unpack_hashes(packed: bytes) -> tuple[int, ...]:
    """Unpack hashes."""
    return unpack(f"<{len(packed) // HASH_BYTES}Q", packed)


def _framed(keys: Sequence[str]) -> bytes:
    """Join keys so that no two different lists give the same bytes."""
    encoded = [key.encode(errors="replace") for key in keys]
    return b"".join(b"%d:%b" % (len(key), key) for key in encoded)
