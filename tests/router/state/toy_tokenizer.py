"""A small deterministic tokenizer of the usual kind: words with their leading space, merges inside a word, a template.

Which neighbours merge first is decided by a checksum, so that a word's tokens depend on all of it, as with real merges.
"""

import re
from array import array
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

_WORD = re.compile(rb" ?[^\s\x00\x01]+|\s+(?!\S)|\s+")
_LONGEST_TOKEN = 6

Message = tuple[str, str]


def tokens_of(text: bytes) -> list[int]:
    """Return the tokens of a text."""
    return [crc32(token) & 0xFFFFFF for word in _WORD.findall(text) for token in _merged(word)]


@lru_cache(maxsize=10_000)
def _merged(word: bytes) -> list[bytes]:
    parts = [word[i : i + 1] for i in range(len(word))]
    while True:
        ranks = [(crc32(a + b), i) for i, (a, b) in enumerate(pairwise(parts)) if _merges(a + b)]
        if not ranks:
            return parts
        _, at = min(ranks)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def _merges(joined: bytes) -> bool:
    return len(joined) <= _LONGEST_TOKEN and crc32(joined) % 3 == 0


def rendered(messages: list[Message], *, asks: bool = False) -> list[int]:
    """Return the tokens of a conversation in the template; ``asks`` adds what stands before an answer."""
    tokens: list[int] = []
    for role, content in messages:
        tokens += [_special(b"start"), _special(role.encode()), *tokens_of(content.encode()), _special(b"end")]
    return [*tokens, _special(b"start"), _special(b"assistant")] if asks else tokens


def extracted(messages: list[Message]) -> bytes:
    """Return a conversation as the router reads it."""
    return "".join(f"\0{role}\1{content}" for role, content in messages).encode()


def packed(tokens: list[int]) -> bytes:
    """Pack tokens as an engine's answer is packed."""
    return array("I", tokens).tobytes()


def _special(name: bytes) -> int:
    return 0x1000000 + crc32(name) % 1000
