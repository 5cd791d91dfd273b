"""The prefix index: which leading blocks of a prompt every instance is expected to hold."""

from router.core.prefix.reference import ReferencePrefixIndex as PrefixIndex

__all__ = ["PrefixIndex"]
