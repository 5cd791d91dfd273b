"""Known prompts: which texts became which tokens, as engines' own tokenizers said.

Entries are learnt off the hot path, after an answer ended, and found at the arrival of a prompt that begins alike. No
text is kept, only hashes of it under the secret of the prompt hasher. Memory is bounded; what was not found for the
longest time goes first.
"""

from collections import OrderedDict

import msgspec

from router.core.prefix.token_chain import TOKEN_BYTES, TokenHasher
from router.state.known_prefix import KnownPrefix

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
_HASH_BYTES = 8
_ENTRY_BYTES = 400
"""What an entry costs beside its chains."""


class TokenisedText(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A text that an engine has in its cache, with the tokens that it became.

    ``text`` and ``chain`` are made like those of a prompt (:mod:`router.proxy.prompt`, the prompt hasher): of a
    conversation with the answer at its end. ``token_ids`` are packed, four bytes each.
    """

    text: bytes
    chain: bytes
    token_ids: bytes
    adapter: str | None = None
    cache_salt: str | None = None
    prompt_bytes: int | None = None
    """How much of the text was the prompt; None when it is not known."""
    prompt_tokens: int | None = None
    """The engine's own count for the prompt, with whatever it puts before an answer."""


class _Entry(msgspec.Struct):
    text_bytes: int
    chain: bytes
    tokens: int
    chains: dict[int, bytes]

    @property
    def size_bytes(self) -> int:
        return _ENTRY_BYTES + len(self.chain) + sum(map(len, self.chains.values()))


class KnownPrompts:
    """Finds what is known of a prompt; one owner, one thread."""

    def __init__(self, hasher: TokenHasher, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._hasher = hasher
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self.bytes = 0
        """Memory of all entries, about."""
        self.block_sizes: tuple[int, ...] = ()
        """Tokens a block of the engines that tell their events; empty: nothing needs to be known."""

    def __len__(self) -> int:
        return len(self._entries)

    def learn(self, learnt: TokenisedText) -> None:
        """Remember which tokens a text became."""
        if not learnt.chain or not self.block_sizes:
            return
        chains = {
            size: self._hasher.chain(learnt.token_ids, size, learnt.adapter, learnt.cache_salt)
            for size in self.block_sizes
        }
        entry = _Entry(len(learnt.text), learnt.chain, len(learnt.token_ids) // TOKEN_BYTES, chains)
        self._drop(learnt.chain[-_HASH_BYTES:])
        self._entries[learnt.chain[-_HASH_BYTES:]] = entry
        self.bytes += entry.size_bytes
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def find(self, text: bytes, chain: bytes) -> KnownPrefix | None:
        """Return what is known of a prompt's beginning; None when nothing is."""
        if not self._entries:
            return None
        for end in range(len(chain), 0, -_HASH_BYTES):
            key = chain[end - _HASH_BYTES : end]
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return KnownPrefix(entry.tokens, entry.text_bytes, end // _HASH_BYTES, entry.chains)
        return None

    def of_ids(self, token_ids: bytes, adapter: str | None = None, cache_salt: str | None = None) -> KnownPrefix | None:
        """Return what is known of a prompt that came as packed token ids: everything."""
        if not self.block_sizes:
            return None
        chains = {size: self._hasher.chain(token_ids, size, adapter, cache_salt) for size in self.block_sizes}
        return KnownPrefix(len(token_ids) // TOKEN_BYTES, len(token_ids), 0, chains)

    def forget(self) -> None:
        """Drop everything: prompts are hashed differently from now on."""
        self._entries.clear()
        self.bytes = 0

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size_bytes
