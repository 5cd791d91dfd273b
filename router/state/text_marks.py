"""Marks: places in a text up to which the tokens were counted, or may be one day.

A mark remembers no text, only a hash under the hash of the blocks before it, so that another text can be asked whether
it reads the same up to the mark. What a mark says is a promise to every such text: its first tokens are the same too.
For that the place must be one that no token crosses, whatever follows:

- behind the head of a message (``\\0role\\1``), where a chat template puts tokens of its own;
- before white space that follows anything else: tokenizers part words there;
- at the end of a message, but only for texts in which it ends there too.
"""

import re
from enum import Enum

import msgspec
from xxhash import xxh3_64_intdigest

BLOCK_BYTES = 64
"""Bytes of text that one hash of a text chain stands for."""
HASH_BYTES = 8
BACK_BYTES = 16
"""A mark is checked from the last block border at least so far before it: no head is longer that matters."""
ANSWER_HEAD = b"\0assistant\1"
"""What stands before an answer; a prompt is rendered as though it were there already."""
_HEAD = re.compile(rb"\x00[^\x00\x01]{1,64}\x01")
_WORD_ENDS = re.compile(rb"\S\s")
FIRST_HEADS = 8
LAST_HEADS = 248
"""Of a longer conversation only the first and the last heads are marked."""
_SEARCHED_BYTES = 512
"""How far back the last end of a word is looked for."""


class Promise(Enum):
    """On what a mark's promise depends, beside the text up to it."""

    ALWAYS = "always"
    CLOSED = "closed"
    """Another message follows, or nothing."""
    END = "end"
    """As before, and the chat template renders an answer the same when more messages follow."""
    PROMPT = "prompt"
    """The chat template puts the same before an answer that is there as before one that is asked for."""

    @property
    def confirmed(self) -> "Promise":
        """What is left of it once the template has kept it."""
        return Promise.CLOSED if self in _CLOSED else Promise.ALWAYS


_CLOSED = frozenset({Promise.CLOSED, Promise.END})


class Mark(msgspec.Struct, frozen=True, gc=False):
    """One place. ``tokens`` is 0 while nobody counted them; ``follower`` tells the next byte, where that matters.

    ``likely`` are the tokens that texts which part just behind it share, as far as was seen; 0 where that is not known.
    """

    position: int
    digest: int
    tokens: int = 0
    promise: Promise = Promise.ALWAYS
    follower: int | None = None
    likely: int = 0

    @property
    def block(self) -> int:
        """How many leading blocks of a text chain must agree before the digest is worth comparing."""
        return block_of(self.position)

    def is_in(self, text: bytes, chain: bytes, agreed: int) -> bool:
        """Say whether a text reads the same up to here; ``agreed`` leading blocks of the chains are equal."""
        position = self.position
        if position > len(text):
            return False
        if position > agreed * BLOCK_BYTES and (self.block > agreed or digest_of(text, chain, position) != self.digest):
            return False
        return self.promise not in _CLOSED or position == len(text) or text[position] == 0


def block_of(position: int) -> int:
    """Return the block border from which a mark is checked."""
    return max(0, position - BACK_BYTES) // BLOCK_BYTES


def digest_of(text: bytes, chain: bytes, position: int) -> int:
    """Hash the text from the mark's block border to the mark, under everything before."""
    block = block_of(position)
    seed = int.from_bytes(chain[(block - 1) * HASH_BYTES : block * HASH_BYTES], "little") if block else 0
    return xxh3_64_intdigest(memoryview(text)[block * BLOCK_BYTES : position], seed)


def mark_at(text: bytes, chain: bytes, position: int, tokens: int = 0, promise: Promise = Promise.ALWAYS) -> Mark:
    """Make the mark of a place in a text."""
    digest = digest_of(text, chain, position)
    following = text[position : position + 1]
    # White space may be trimmed by a template, so it parts nothing for certain.
    follower = xxh3_64_intdigest(following, digest) & 0xFF if following.strip() else None
    return Mark(position, digest, tokens, promise, follower)


def heads_of(text: bytes, chain: bytes) -> list[Mark]:
    """Mark the places behind the heads of the messages of a conversation, or of the first and last of very many."""
    places = [found.end() for found in _HEAD.finditer(text)]
    if len(places) > FIRST_HEADS + LAST_HEADS:
        places[FIRST_HEADS:-LAST_HEADS] = []
    return [mark_at(text, chain, place) for place in places]


def word_end_before(text: bytes, position: int) -> int | None:
    """Return the last place (< ``position``) at which a word ends and white space follows; None when none is near."""
    last = None
    for found in _WORD_ENDS.finditer(text, max(0, position - _SEARCHED_BYTES), position):
        last = found.start() + 1
    return last
