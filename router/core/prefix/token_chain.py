"""Our own hashes of token blocks, the same whichever engine holds them.

A block's hash stands for the adapter, every token up to its end, and whatever else was hashed on the way (salt,
images). The seed is a secret of the process: nobody outside can construct two prompts that collide, and hashes never
leave. Splitting a run of blocks over several events does not change its hashes.
"""

from collections.abc import Sequence
from struct import error as struct_error
from struct import pack

from xxhash import xxh3_64_intdigest

TOKEN_BYTES = 4
HASH_BYTES = 8


class TokenHasher:
    """Hashes blocks of tokens; ``seed`` is a secret 64-bit number."""

    __slots__ = ("_seed",)

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def root(self, adapter: str | None) -> int:
        """Return what precedes a prompt's first block."""
        return xxh3_64_intdigest(b"" if adapter is None else b"\x01" + adapter.encode(errors="replace"), self._seed)

    def extend(
        self, parent: int, packed: bytes, block_tokens: int, extra_keys: Sequence[Sequence[str]] = ()
    ) -> list[int]:
        """Return the hashes of the whole blocks of ``packed`` tokens that follow ``parent``.

        ``extra_keys`` are each block's further keys, the adapter left out; empty when no block has any.
        """
        size = block_tokens * TOKEN_BYTES
        view = memoryview(packed)
        hashes: list[int] = []
        for number, start in enumerate(range(0, len(packed) - size + 1, size)):
            block: bytes | memoryview = view[start : start + size]
            if extra_keys and extra_keys[number]:
                block = bytes(block) + _framed(extra_keys[number])
            parent = xxh3_64_intdigest(block, parent)
            hashes.append(parent)
        return hashes

    def chain(
        self, packed: bytes, block_tokens: int, adapter: str | None = None, cache_salt: str | None = None
    ) -> bytes:
        """Return a prompt's chain, packed: what its blocks are called in every residency."""
        salted = [(cache_salt,) if cache_salt is not None and number == 0 else () for number in range(1)]
        size = block_tokens * TOKEN_BYTES
        first = self.extend(self.root(adapter), packed[:size], block_tokens, salted)
        if not first:
            return b""
        return pack_hashes(first + self.extend(first[0], packed[size:], block_tokens))


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


def _framed(keys: Sequence[str]) -> bytes:
    """Join keys so that no two different lists give the same bytes."""
    encoded = [key.encode(errors="replace") for key in keys]
    return b"".join(b"%d:%b" % (len(key), key) for key in encoded)
