"""The prefix index: which leading blocks of a prompt every instance is expected to hold.

``PrefixIndex`` is the compiled index or, where that could not be built, the one in plain Python; ``IMPLEMENTATION``
says which. Both keep the contract of ``NativePrefixIndex`` (``_native.pyi``) and pass the same tests.
"""

from router.core.prefix.chain import PromptHasher, pack, prefix_key
from router.core.prefix.implementation import IMPLEMENTATION, PrefixIndex, common_blocks

__all__ = ["IMPLEMENTATION", "PrefixIndex", "PromptHasher", "common_blocks", "pack", "prefix_key"]
