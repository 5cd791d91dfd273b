"""The simulated tokenizer: four UTF-8 bytes are one token.

A token sequence is packed: four bytes a token, little-endian, so that slicing, hashing and comparing cost nothing. A
text whose length is no multiple of four ends in a token padded with NUL bytes, which :func:`text_of` drops again.
"""

import struct
from collections.abc import Sequence

TOKEN_BYTES = 4
VOCABULARY_SIZE = 2**32


def pack_text(text: str) -> bytes:
    """Return the packed tokens of a text."""
    raw = text.encode()
    return raw + bytes(-len(raw) % TOKEN_BYTES)


def pack_ids(ids: Sequence[int]) -> bytes:
    """Return the packed form of token ids, each in ``range(VOCABULARY_SIZE)``."""
    return struct.pack(f"<{len(ids)}I", *ids)


def ids_of(packed: bytes) -> list[int]:
    """Return the token ids of a packed sequence."""
    return list(struct.unpack(f"<{count_of(packed)}I", packed))


def text_of(packed: bytes) -> str:
    """Return the text of a packed sequence; bytes that are no UTF-8 become replacement characters."""
    return packed.replace(b"\0", b"").decode(errors="replace")


def count_of(packed: bytes) -> int:
    """Return the number of tokens."""
    return len(packed) // TOKEN_BYTES
