"""A text with the tokens that it became, and the marks that follow from that."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from router.core.prefix.token_chain import TOKEN_BYTES
from router.state.text_marks import (
    ANSWER_HEAD,
    BLOCK_BYTES,
    FIRST_HEADS,
    LAST_HEADS,
    Mark,
    Promise,
    heads_of,
    mark_at,
    word_end_before,
)

MOST_MARKS = FIRST_HEADS + LAST_HEADS + 64
_BETWEEN_MESSAGES = 8
"""The most tokens that a template puts between the end of one message and the head of the next."""
position_of = attrgetter("position")


class TokenisedText(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A text that an engine has in its cache, with the tokens that it became.

    ``text`` and ``chain`` are made like those of a prompt (:mod:`router.proxy.prompt`, the prompt hasher): of a
    conversation with the answer at its end. ``token_ids`` are packed, four bytes each.
    """

    text: bytes
    chain: bytes
    token_ids: bytes
    model: str = ""
    """Whose chat template it went through."""
    adapter: str | None = None
    cache_salt: str | None = None
    prompt_bytes: int | None = None
    """How much of the text was the prompt; None when it is not known."""
    prompt_tokens: int | None = None
    """The engine's own count for the prompt, with whatever it puts before an answer."""

    @property
    def tokens(self) -> int:
        """How many tokens the text became."""
        return len(self.token_ids) // TOKEN_BYTES


def marks_of(learnt: TokenisedText) -> Iterator[Mark]:
    """Mark what is known of a text by itself: the heads of its messages, its end, and the end of its prompt."""
    text, chain, tokens = learnt.text, learnt.chain, learnt.tokens
    heads = heads_of(text, chain)
    yield from heads
    if heads:
        yield mark_at(text, chain, len(text), tokens, Promise.END)
    else:
        yield mark_at(text, chain, len(text), tokens, Promise.CLOSED)
        last = word_end_before(text, len(text))
        if last is not None and tokens > len(text) - last:  # behind it there is at most one token a byte
            yield mark_at(text, chain, last + 1, tokens - (len(text) - last))
    if learnt.prompt_bytes is None or learnt.prompt_tokens is None or learnt.prompt_tokens > tokens:
        return
    behind = learnt.prompt_bytes + len(ANSWER_HEAD)
    if not heads:
        yield mark_at(text, chain, learnt.prompt_bytes, learnt.prompt_tokens, Promise.CLOSED)
    elif text[learnt.prompt_bytes : behind] == ANSWER_HEAD:
        yield mark_at(text, chain, behind, learnt.prompt_tokens, Promise.PROMPT)


def parting_of(common: Sequence[Mark], learnt: TokenisedText, agreed: int, shared: int) -> Mark | None:
    """Return a counted mark for the place where a text leaves an older one; None where nothing can be said.

    :param common: the marks of the older one that are in the text too.
    :param agreed: leading blocks of text that both share.
    :param shared: leading tokens that both share.
    """
    text, chain = learnt.text, learnt.chain
    last = common[-1] if common else None
    if last is not None and last.promise is Promise.ALWAYS and last.follower is not None:
        follower = mark_at(text, chain, last.position).follower
        if follower is not None and follower != last.follower:
            return replace(last, tokens=shared) if shared else None
    if len(common) >= FIRST_HEADS:
        return None  # not every head may be marked
    return _inside_message(common, learnt, agreed * BLOCK_BYTES, shared)


def _inside_message(common: Sequence[Mark], learnt: TokenisedText, border: int, shared: int) -> Mark | None:
    """Mark the last whole word before two texts part, in the block behind a border.

    No token is shorter than a byte, so that much less is surely shared at that place than where they part.
    """
    place = word_end_before(learnt.text, border)
    if place is None or (common and place < common[-1].position):
        return None
    tokens = shared - (border + BLOCK_BYTES - 1 - place)
    if 0 in learnt.text[place : border + BLOCK_BYTES]:
        tokens -= _BETWEEN_MESSAGES
    if tokens <= max((mark.tokens for mark in common), default=0):
        return None
    return replace(mark_at(learnt.text, learnt.chain, place + 1, tokens), likely=shared)


def put_mark(marks: list[Mark], mark: Mark, follower: int | None = None) -> None:
    """Put a mark into its place in a list by position; it replaces one of the same place and promise.

    What follows there is the text's own: that of the mark which was there already, or ``follower``.
    """
    at = bisect_right(marks, mark.position, key=position_of)
    for index in range(at - 1, -1, -1):
        if marks[index].position != mark.position:
            break
        if marks[index].promise is mark.promise:
            marks[index] = replace(mark, follower=marks[index].follower)
            return
    if len(marks) < MOST_MARKS:
        marks.insert(at, replace(mark, follower=follower))
