"""KV events as vLLM 0.32 publishes them: what entered and left the prefix cache, for whoever follows along.

Pure: cache events in, a msgpack payload out. The sockets are in :mod:`router.engine.kv_publisher`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from router.engine.block_chain import hashes_of
from router.engine.sequence import Sequence
from router.engine.tokens import TOKEN_BYTES, ids_of
from router.sim.kv_cache import ClearedBlocks, KvEvent, RemovedBlocks, StoredBlocks

MEDIUM = "GPU"
_encoder = msgspec.msgpack.Encoder()


class EventEncoder:
    """Encodes batches of one rank of an engine; ``find`` returns the sequence of a request id."""

    def __init__(self, block_tokens: int, adapters: tuple[str, ...], rank: int) -> None:
        self._rank = rank
        self._block_tokens = block_tokens
        self._adapters = adapters

    def batch(self, unix_s: float, events: list[KvEvent], find: Callable[[str], Sequence | None]) -> bytes:
        """Return the payload ``[ts, [event...], data_parallel_rank]``."""
        encoded: list[dict[str, Any]] = []
        for event in events:
            match event:
                case StoredBlocks():
                    encoded += self._stored(event, find)
                case RemovedBlocks():
                    encoded += _removed(event)
                case ClearedBlocks():
                    encoded.append({"type": "AllBlocksCleared"})
        return _encoder.encode([unix_s, encoded, self._rank])

    def _stored(self, event: StoredBlocks, find: Callable[[str], Sequence | None]) -> list[dict[str, Any]]:
        sequence = find(event.request_id)
        if sequence is None:
            raise LookupError(f"blocks were stored for request {event.request_id}, which is not here")
        hashes = hashes_of(event.blocks)
        size = self._block_tokens * TOKEN_BYTES
        start = event.start_block * size
        packed = (sequence.prompt + sequence.output)[start : start + len(hashes) * size]
        adapter = sequence.adapter
        return [
            {
                "type": "BlockStored",
                "block_hashes": hashes,
                "parent_block_hash": hashes_of(event.parent)[0] if event.parent else None,
                "token_ids": ids_of(packed),
                "block_size": self._block_tokens,
                "lora_id": None if adapter is None else 1 + self._adapters.index(adapter),
                "medium": MEDIUM,
                "lora_name": adapter,
                "extra_keys": _extra_keys(sequence, event.start_block, len(hashes)),
                "group_idx": 0,
                "kv_cache_spec_kind": "full_attention",
            }
        ]


def _removed(event: RemovedBlocks) -> list[dict[str, Any]]:
    """One event a block, deepest first, as the block pool of vLLM evicts them."""
    return [
        {"type": "BlockRemoved", "block_hashes": [block], "medium": MEDIUM, "group_idx": 0}
        for block in reversed(hashes_of(event.blocks))
    ]


def _extra_keys(sequence: Sequence, start_block: int, blocks: int) -> list[list[str] | None]:
    """What besides tokens is hashed: the adapter into every block, the salt into a prompt's first."""
    every = [sequence.adapter] if sequence.adapter else []
    keys: list[list[str] | None] = [list(every) or None for _ in range(blocks)]
    if start_block == 0 and blocks and sequence.cache_salt is not None:
        keys[0] = [*every, sequence.cache_salt]
    return keys
