"""From a msgpack payload to an :class:`~router.kvevents.events.EventBatch`.

Every version of vLLM sends ``[ts, [event...], rank]``; an event is a map with ``type`` since 0.24 and an array that
begins with the type before. Trailing fields may be missing, new ones may appear. A payload is first decoded in one
go; only when that fails its events are taken one by one, so that one bad event costs itself and not its neighbours.
"""

from typing import Any

import msgspec

from router.kvevents.errors import DecodeError
from router.kvevents.events import AllBlocksCleared, BlocksRemoved, BlocksStored, EngineHash, EventBatch, KvEvent
from router.unreadable import UNREADABLE

_Extra = list[list[Any] | None] | None
"""For each block a list of further keys, or None."""


class _StoredMap(msgspec.Struct, tag_field="type", tag="BlockStored"):
    block_hashes: list[EngineHash]
    parent_block_hash: EngineHash | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: _Extra = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


class _RemovedMap(msgspec.Struct, tag_field="type", tag="BlockRemoved"):
    block_hashes: list[EngineHash]
    medium: str | None = None
    group_idx: int | None = None


class _ClearedMap(msgspec.Struct, tag_field="type", tag="AllBlocksCleared"):
    pass


class _StoredArray(msgspec.Struct, array_like=True, tag="BlockStored"):
    block_hashes: list[EngineHash]
    parent_block_hash: EngineHash | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: _Extra = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


class _RemovedArray(msgspec.Struct, array_like=True, tag="BlockRemoved"):
    block_hashes: list[EngineHash]
    medium: str | None = None
    group_idx: int | None = None


class _ClearedArray(msgspec.Struct, array_like=True, tag="AllBlocksCleared"):
    pass


_MapEvent = _StoredMap | _RemovedMap | _ClearedMap
_ArrayEvent = _StoredArray | _RemovedArray | _ClearedArray
_Wire = _StoredMap | _RemovedMap | _ClearedMap | _StoredArray | _RemovedArray | _ClearedArray


class _Envelope(msgspec.Struct, array_like=True):
    ts: float
    events: list[msgspec.Raw]
    data_parallel_rank: int | None = None


class _MapBatch(msgspec.Struct, array_like=True):
    ts: float
    events: list[_MapEvent]
    data_parallel_rank: int | None = None


_map_batch = msgspec.msgpack.Decoder(_MapBatch)
_envelope = msgspec.msgpack.Decoder(_Envelope)
_map_event: msgspec.msgpack.Decoder[_Wire] = msgspec.msgpack.Decoder(_MapEvent)
_array_event: msgspec.msgpack.Decoder[_Wire] = msgspec.msgpack.Decoder(_ArrayEvent)
_STORED, _REMOVED = (_StoredMap, _StoredArray), (_RemovedMap, _RemovedArray)
_KNOWN = frozenset({"BlockStored", "BlockRemoved", "AllBlocksCleared"})
_FIXMAP, _FIXARRAY, _ARRAYS, _MAPS = range(0x80, 0x90), range(0x90, 0xA0), (0xDC, 0xDD), (0xDE, 0xDF)
"""First bytes of msgpack containers."""


def decode_batch(payload: bytes) -> EventBatch:
    """Decode one message's payload.

    :raises DecodeError: when it is no event batch at all.
    """
    try:
        batch = _map_batch.decode(payload)
        return EventBatch(batch.ts, [_event(event) for event in batch.events], batch.data_parallel_rank)
    except (*UNREADABLE, DecodeError):
        return _one_by_one(payload)


def _one_by_one(payload: bytes) -> EventBatch:
    try:
        envelope = _envelope.decode(payload)
    except UNREADABLE as error:
        raise DecodeError(f"no event batch: {error}") from error
    events: list[KvEvent] = []
    refused = unknown = 0
    for raw in envelope.events:
        try:
            events.append(_event(_decoder(raw).decode(raw)))
        except (*UNREADABLE, DecodeError):
            if _is_of_unknown_kind(raw):
                unknown += 1
            else:
                refused += 1
    return EventBatch(envelope.ts, events, envelope.data_parallel_rank, refused, unknown)


def _decoder(raw: msgspec.Raw) -> "msgspec.msgpack.Decoder[_Wire]":
    first = memoryview(raw)[0]
    return _array_event if first in _FIXARRAY or first in _ARRAYS else _map_event


def _is_of_unknown_kind(raw: msgspec.Raw) -> bool:
    try:
        value = msgspec.msgpack.decode(raw)
    except UNREADABLE:
        return False
    kind = value.get("type") if isinstance(value, dict) else value[0] if isinstance(value, list) and value else None
    return isinstance(kind, str) and kind not in _KNOWN


def _event(wire: _Wire) -> KvEvent:
    if isinstance(wire, _STORED):
        return _stored(wire)
    if isinstance(wire, _REMOVED):
        return BlocksRemoved(wire.block_hashes, wire.medium, wire.group_idx)
    return AllBlocksCleared()


def _stored(wire: _StoredMap | _StoredArray) -> BlocksStored:
    if wire.block_size < 1 or len(wire.token_ids) != len(wire.block_hashes) * wire.block_size:
        raise DecodeError(
            f"{len(wire.block_hashes)} blocks of {wire.block_size} tokens cannot have {len(wire.token_ids)} tokens"
        )
    adapter = wire.lora_name
    if adapter is None and wire.lora_id is not None:
        adapter = f"lora-id:{wire.lora_id}"
    return BlocksStored(
        hashes=wire.block_hashes,
        parent=wire.parent_block_hash,
        token_ids=wire.token_ids,
        block_tokens=wire.block_size,
        medium=wire.medium,
        adapter=adapter,
        extra_keys=_extra_keys(wire.extra_keys, len(wire.block_hashes)),
        group=wire.group_idx,
        attention=wire.kv_cache_spec_kind,
    )


def _extra_keys(keys: _Extra, blocks: int) -> tuple[tuple[str, ...], ...]:
    """Return each block's further keys as text, or nothing when no block has any."""
    if keys is None or not any(keys):
        return ()
    if len(keys) != blocks:
        raise DecodeError(f"{blocks} blocks cannot have {len(keys)} lists of extra keys")
    return tuple(tuple(each if isinstance(each, str) else repr(each) for each in block or ()) for block in keys)
