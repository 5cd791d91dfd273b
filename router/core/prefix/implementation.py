"""Which prefix index serves: the compiled one, or the one in plain Python where no compiler was at hand."""

from typing import TYPE_CHECKING

IMPLEMENTATION: str
"""``native`` or ``reference``."""

if TYPE_CHECKING:
    from router.core.prefix._native import NativePrefixIndex as PrefixIndex
    from router.core.prefix._native import common_blocks, hash_chain, hash_tokens
else:
    try:
        from router.core.prefix._native import NativePrefixIndex as PrefixIndex
        from router.core.prefix._native import common_blocks, hash_chain, hash_tokens
    except ImportError:
        from router.core.prefix.reference import ReferencePrefixIndex as PrefixIndex
        from router.core.prefix.reference import common_blocks, hash_chain, hash_tokens

        IMPLEMENTATION = "reference"
    else:
        IMPLEMENTATION = "native"

__all__ = ["IMPLEMENTATION", "PrefixIndex", "common_blocks", "hash_chain", "hash_tokens"]
