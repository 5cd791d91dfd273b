"""KV events as the router understands them, whichever engine and version wrote them.

``hashes`` are the engine's own and opaque: unsigned in vLLM, signed in SGLang, sometimes raw bytes. They tell blocks
of one engine process apart and nothing else.
"""

import msgspec

EngineHash = int | bytes


class BlocksStored(msgspec.Struct, frozen=True, gc=False):
    """A run of consecutive blocks became resident in ``medium``, once more for each time it is said.

    ``token_ids`` are ``block_tokens`` for each of ``hashes``; ``parent`` precedes the first block (None: a prompt
    begins here). ``extra_keys`` says for each block what else was hashed (adapter, salt, images); empty when nothing.
    """

    hashes: list[EngineHash]
    parent: EngineHash | None
    token_ids: list[int]
    block_tokens: int
    medium: str | None = None
    adapter: str | None = None
    extra_keys: tuple[tuple[str, ...], ...] = ()
    group: int | None = None
    attention: str | None = None


class BlocksRemoved(msgspec.Struct, frozen=True, gc=False):
    """One copy of each block left ``medium``."""

    hashes: list[EngineHash]
    medium: str | None = None
    group: int | None = None


class AllBlocksCleared(msgspec.Struct, frozen=True, gc=False):
    """Nothing is resident any more."""


KvEvent = BlocksStored | BlocksRemoved | AllBlocksCleared


class EventBatch(msgspec.Struct, frozen=True, gc=False):
    """One message: ``unix_s`` by the engine's clock; ``rank`` is its data-parallel rank (None: it has none).

    ``refused`` counts events of it that could not be read, ``unknown`` those of a kind that is not known; both are
    left out.
    """

    unix_s: float
    events: list[KvEvent]
    rank: int | None = None
    refused: int = 0
    unknown: int = 0
