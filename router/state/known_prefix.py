"""The leading part of a prompt whose tokens are known, with what its token blocks are called."""

from collections.abc import Mapping

import msgspec


class KnownPrefix(msgspec.Struct, frozen=True, gc=False):
    """What is known of one prompt's tokens without having tokenised it.

    Its first ``text_bytes`` bytes are ``tokens`` tokens, certainly. Its first ``likely_bytes`` (not less) were seen
    before as well, but no place near their end where the tokens were counted: ``likely_tokens`` lies on the line
    between the two nearest.
    """

    tokens: int
    text_bytes: int
    likely_tokens: int
    likely_bytes: int
    chains: Mapping[int, bytes]
    """By tokens in a block: the packed hashes of the whole blocks in the likely tokens."""

    def tokens_of(self, text_bytes: int) -> float:
        """Return about how many tokens so many leading bytes are, where they are known; all of them otherwise."""
        if text_bytes >= self.likely_bytes:
            return float(self.likely_tokens)
        if text_bytes >= self.text_bytes:
            span = (self.likely_tokens - self.tokens) / (self.likely_bytes - self.text_bytes)
            return self.tokens + (text_bytes - self.text_bytes) * span
        return self.tokens * text_bytes / self.text_bytes
