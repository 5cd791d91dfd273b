"""Text for a trace's prompts: equal prefix blocks become equal text, at four bytes a token.

A trace names blocks by chain hash and says nothing of their text. Any text will do, as long as equal hashes give
equal text and everything else differs: the tail behind a prompt's last full block is its own.
"""

from functools import lru_cache

from router.filler import filler

TOKEN_BYTES = 4
HASH_BYTES = 8
CHAT_FRAME_TOKENS = 3
"""What a chat template adds around one user message in the simulated engine; real templates add a little more."""


@lru_cache(maxsize=8192)
def _block_text(block: bytes, tokens: int) -> bytes:
    return filler(block, tokens)


def prompt_text(blocks: bytes, block_tokens: int, tokens: int, nonce: bytes) -> bytes:
    """Return ASCII text of ``tokens`` tokens that begins with the text of ``blocks`` (packed chain hashes).

    ``nonce`` makes what follows the blocks different from every other prompt.
    """
    parts = [
        _block_text(blocks[start : start + HASH_BYTES], block_tokens) for start in range(0, len(blocks), HASH_BYTES)
    ]
    tail = tokens - len(parts) * block_tokens
    if tail > 0:
        parts.append(filler(blocks[-HASH_BYTES:] + nonce, tail))
    return b"".join(parts)[: tokens * TOKEN_BYTES]
