"""The leading part of a prompt whose tokens are known, with what its token blocks are called."""

from collections.abc import Mapping

import msgspec


class KnownPrefix(msgspec.Struct, frozen=True, gc=False):
    """What is known of one prompt's tokens without having tokenised it.

    ``tokens`` tokens are those of the first ``text_blocks`` blocks of its text (and of a few bytes more), certainly.
    """

    tokens: int
    text_bytes: int
    text_blocks: int
    chains: Mapping[int, bytes]
    """By tokens in a block: the packed hashes of the known token blocks."""
