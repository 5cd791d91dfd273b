"""Known prompts: which texts became which tokens, as engines' own tokenizers said.

Entries are learnt off the hot path, after an answer ended, and found at the arrival of a prompt that begins alike. No
text is kept, only hashes of it under the secret of the prompt hasher, the names of its token blocks, and marks
(:mod:`router.state.text_marks`). Where two texts part, their tokens show how much they share; the place is marked in
both, so that what many conversations begin with is exact from the second one on. A turn of a conversation takes the
place of the turn before. Memory is bounded; what was not found for the longest time goes first.

What is claimed for certain is never more than what the prompt truly shares with a text that was learnt, for tokenizers
that part words at white space and templates that part messages by tokens of their own.
"""

from bisect import bisect_left
from collections import OrderedDict

import msgspec
from msgspec.structs import replace

from router.core.prefix import common_blocks
from router.core.prefix.token_chain import TOKEN_BYTES, TokenHasher
from router.state.known_prefix import KnownPrefix
from router.state.template_trust import TemplateTrust
from router.state.text_marks import ANSWER_HEAD, BACK_BYTES, BLOCK_BYTES, HASH_BYTES, Mark, Promise
from router.state.tokenised_text import TokenisedText, marks_of, parting_of, position_of, put_mark

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
INDEXED_EVERY = 32
_INDEXED_FIRST = (1, 2, 4, 8, 16)
_INDEXED_HEADS = 8
"""An entry is found by every so-manyth block of its text and a few of the first, by its last one, and by those of its
first messages and of its counted marks."""
_MOST_KIN = 4
"""Entries that a new one is compared with."""
_ENTRY_BYTES = 800
_MARK_BYTES = 200
_KEY_BYTES = 150


class _Entry(msgspec.Struct):
    number: int
    model: str
    text_bytes: int
    chain: bytes
    tokens: int
    chains: dict[int, bytes]
    marks: list[Mark]
    """By position."""
    keys: set[bytes]
    """The hashes of the blocks by which the entry is found."""

    @property
    def size_bytes(self) -> int:
        chains = len(self.chain) + sum(map(len, self.chains.values()))
        return _ENTRY_BYTES + chains + _MARK_BYTES * len(self.marks) + _KEY_BYTES * len(self.keys)

    def choose_keys(self) -> None:
        """Choose the keys that follow from the marks; those that were chosen before stay."""
        last = len(self.chain) // HASH_BYTES
        blocks = {*_INDEXED_FIRST, *range(INDEXED_EVERY, last, INDEXED_EVERY), last}
        blocks.update(mark.block for place, mark in enumerate(self.marks) if mark.tokens or place < _INDEXED_HEADS)
        self.keys.update(self.chain[(b - 1) * HASH_BYTES : b * HASH_BYTES] for b in blocks if 0 < b <= last)

    def shared_tokens(self, other: "_Entry") -> int:
        """Return how many tokens, in whole blocks of the smallest size, two texts surely begin with alike."""
        for size, chain in sorted(self.chains.items()):
            if size in other.chains:
                return common_blocks(chain, other.chains[size]) * size
        return 0


class KnownPrompts:
    """Finds what is known of a prompt; one owner, one thread."""

    def __init__(self, hasher: TokenHasher, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._hasher = hasher
        self._max_bytes = max_bytes
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._by_block: dict[bytes, _Entry] = {}
        self._trust = TemplateTrust()
        self._learnt = 0
        self.bytes = 0
        """Memory of all entries, about."""
        self.block_sizes: tuple[int, ...] = ()
        """Tokens a block of the engines that tell their events; empty: nothing needs to be known."""

    def __len__(self) -> int:
        return len(self._entries)

    def learn(self, learnt: TokenisedText) -> None:
        """Remember which tokens a text became; texts below one block are not worth it."""
        if not learnt.chain or not self.block_sizes:
            return
        entry = self._entry_of(learnt)
        entry.choose_keys()
        for old in self._kin(entry):
            self._compare(old, entry, learnt)
        self._add(entry)
        while self.bytes > self._max_bytes and self._entries:
            self._drop(next(iter(self._entries.values())))

    def find(self, text: bytes, chain: bytes) -> KnownPrefix | None:
        """Return what is known of a prompt's beginning; None when nothing is."""
        if not self._entries:
            return None
        entry = self._deepest(chain)
        if entry is None:
            return None
        self._entries.move_to_end(entry.number)
        agreed = common_blocks(entry.chain, chain)
        mark = self._last_promise(entry, text, chain, agreed)
        agreed_bytes = min(agreed * BLOCK_BYTES, entry.text_bytes, len(text))
        beyond = None
        if mark is None or agreed_bytes > mark.position:
            beyond = self._last_count(entry)
        return _known(entry, mark, beyond, agreed_bytes, len(text))

    def of_ids(self, token_ids: bytes, adapter: str | None = None, cache_salt: str | None = None) -> KnownPrefix | None:
        """Return what is known of a prompt that came as packed token ids: everything."""
        if not self.block_sizes:
            return None
        chains = {size: self._hasher.chain(token_ids, size, adapter, cache_salt) for size in self.block_sizes}
        tokens = len(token_ids) // TOKEN_BYTES
        return KnownPrefix(tokens, len(token_ids), tokens, len(token_ids), chains)

    def forget(self) -> None:
        """Drop everything: prompts are hashed differently from now on."""
        self._entries.clear()
        self._by_block.clear()
        self.bytes = 0

    def _entry_of(self, learnt: TokenisedText) -> _Entry:
        chains = {
            size: self._hasher.chain(learnt.token_ids, size, learnt.adapter, learnt.cache_salt)
            for size in self.block_sizes
        }
        self._learnt += 1
        tokens = len(learnt.token_ids) // TOKEN_BYTES
        entry = _Entry(self._learnt, learnt.model, len(learnt.text), learnt.chain, tokens, chains, [], set())
        for mark in marks_of(learnt):
            put_mark(entry.marks, mark, mark.follower)
        return entry

    def _deepest(self, chain: bytes) -> _Entry | None:
        """Return an entry that shares about as many leading blocks as any does."""
        by_block = self._by_block
        blocks = len(chain) // HASH_BYTES
        best = None
        border = blocks - blocks % INDEXED_EVERY
        for end in range(border * HASH_BYTES, 0, -INDEXED_EVERY * HASH_BYTES):
            best = by_block.get(chain[end - HASH_BYTES : end])
            if best is not None:
                border = end // HASH_BYTES
                break
        else:
            border = 0
        last = min(blocks, border + INDEXED_EVERY - 1)
        for end in range(last * HASH_BYTES, border * HASH_BYTES, -HASH_BYTES):
            found = by_block.get(chain[end - HASH_BYTES : end])
            if found is not None:
                return found
        return best

    def _last_promise(self, entry: _Entry, text: bytes, chain: bytes, agreed: int) -> Mark | None:
        """Return the last mark that promises something to a text."""
        reach = agreed * BLOCK_BYTES + BLOCK_BYTES + BACK_BYTES
        for place in range(bisect_left(entry.marks, reach, key=position_of) - 1, -1, -1):
            mark = entry.marks[place]
            if mark.tokens and self._trust.holds(entry.model, mark.promise):
                asked = mark.promise is Promise.PROMPT and mark.position > len(text)
                if mark.is_in(text + ANSWER_HEAD if asked else text, chain, agreed):
                    return mark
        return None

    def _last_count(self, entry: _Entry) -> Mark | None:
        """Return the last mark at which the tokens were counted, not only bounded, if the template is trusted."""
        for mark in reversed(entry.marks):
            if mark.promise is not Promise.ALWAYS and self._trust.holds(entry.model, mark.promise):
                return mark
        return None

    def _kin(self, entry: _Entry) -> list[_Entry]:
        """Return a few known entries that begin like a new one, the one that shares the most first."""
        deepest = self._deepest(entry.chain)
        if deepest is None:
            return []
        others = {old.number: old for key in entry.keys if (old := self._by_block.get(key)) not in (None, deepest)}
        return [deepest, *(others[number] for number in sorted(others, reverse=True)[: _MOST_KIN - 1])]

    def _compare(self, old: _Entry, new: _Entry, learnt: TokenisedText) -> None:
        """Learn from what two texts share, and let the new one take the place of an old one that it contains."""
        text, chain = learnt.text, learnt.chain
        agreed, shared = common_blocks(old.chain, chain), old.shared_tokens(new)
        common = [mark for mark in old.marks if mark.is_in(text, chain, agreed)]
        for mark in common:
            if mark.tokens:
                self._confirm(old, new, mark, shared)
        if common and common[-1].position == old.text_bytes:
            self._drop(old)
            return
        parting = parting_of(common, learnt, agreed, shared)
        if parting is not None:
            self.bytes -= old.size_bytes
            put_mark(old.marks, parting)
            put_mark(new.marks, parting)
            old.choose_keys()
            self.bytes += old.size_bytes
            for key in old.keys:
                self._by_block.setdefault(key, old)

    def _confirm(self, old: _Entry, new: _Entry, mark: Mark, shared: int) -> None:
        """Carry a counted mark over to a text that shares it; what it promised too much is taken back."""
        size = min(old.chains)
        held = shared >= mark.tokens // size * size
        self._trust.saw(old.model, mark.promise, held=held)
        counted = min(mark.tokens, shared)
        likely = min(mark.likely, shared)
        put_mark(new.marks, replace(mark, tokens=counted, likely=likely, promise=mark.promise.confirmed))
        if not held:
            put_mark(old.marks, replace(mark, tokens=counted))

    def _add(self, entry: _Entry) -> None:
        entry.choose_keys()
        self._entries[entry.number] = entry
        for key in entry.keys:
            self._by_block[key] = entry
        self.bytes += entry.size_bytes

    def _drop(self, entry: _Entry) -> None:
        del self._entries[entry.number]
        self.bytes -= entry.size_bytes
        for key in entry.keys:
            if self._by_block.get(key) is entry:
                del self._by_block[key]


def _known(entry: _Entry, mark: Mark | None, beyond: Mark | None, agreed_bytes: int, text_bytes: int) -> KnownPrefix:
    """Put together what is known: certain up to a mark, likely from there on to where the texts part."""
    tokens, certain_bytes = (0, 0) if mark is None else (mark.tokens, min(mark.position, text_bytes))
    likely, likely_bytes = tokens, certain_bytes
    if mark is not None and mark.likely > tokens:  # most that part behind it share more than is certain
        likely, likely_bytes = mark.likely, max(certain_bytes, min(agreed_bytes, mark.position + BLOCK_BYTES))
    if beyond is not None and likely_bytes < agreed_bytes <= beyond.position:
        step = max(0, beyond.tokens - likely) / (beyond.position - likely_bytes)
        likely += int((agreed_bytes - likely_bytes) * step)
        likely_bytes = agreed_bytes
    chains = {size: chain[: likely // size * HASH_BYTES] for size, chain in entry.chains.items()}
    return KnownPrefix(tokens, certain_bytes, likely, likely_bytes, chains)
