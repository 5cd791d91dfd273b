"""Turning an order of preference into scores."""

from collections.abc import Sequence


def dense_ranks(keys: Sequence[tuple[float, ...]]) -> list[int]:
    """Return 0 for the smallest key, 1 for the next different one, and so on; equal keys stay equal."""
    rank = {key: position for position, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]
