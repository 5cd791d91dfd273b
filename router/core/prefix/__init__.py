"""The prefix index: which leading blocks of a prompt every instance is expected to hold."""

from router.core.prefix.chain import PromptHasher, pack, prefix_key
from router.core.prefix.reference import ReferencePrefixIndex as PrefixIndex

IMPLEMENTATION = "reference"

__all__ = ["IMPLEMENTATION", "PrefixIndex", "PromptHasher", "pack", "prefix_key"]
