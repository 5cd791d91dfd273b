"""What a decision may know about a request: never its text, only lengths, names and hashes."""

import msgspec

DEFAULT_WORKLOAD = "default"
PRELOAD_WORKLOAD = "preload"
"""Requests that warm a cache are counted under this name, apart from users' traffic."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request at the moment of its decision.

    ``prompt_tokens`` >= 1. ``tokens_per_block`` converts matched prefix blocks into tokens: the block size where
    blocks are tokens, an estimate where blocks are bytes (then ``estimated`` is true).
    """

    id: str
    model: str
    prompt_tokens: int
    tokens_per_block: float = 16.0
    estimated: bool = False
    workload: str = DEFAULT_WORKLOAD
    adapter: str | None = None
    session: str | None = None
    preferred: int | None = None
    """Slot of the instance that last served the session: it wins ties."""
    tried: frozenset[int] = frozenset()
    """Slots of instances that already failed this request."""
    pinned: int | None = None
    """Slot of the only instance that may take it."""
