"""Every encoding gives the same events, and no bytes whatever bring the decoder down."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from router.kvevents.decoding import decode_batch
from router.kvevents.errors import DecodeError
from router.kvevents.events import AllBlocksCleared, BlocksRemoved, BlocksStored

TOKENS = list(range(32))
STORED_MAP = {
    "type": "BlockStored",
    "block_hashes": [2**64 - 1, 7],
    "parent_block_hash": 5,
    "token_ids": TOKENS,
    "block_size": 16,
    "lora_id": 1,
    "medium": "GPU",
    "lora_name": "a",
    "extra_keys": [["a", "salt"], ["a"]],
    "group_idx": 0,
    "kv_cache_spec_kind": "full_attention",
}
STORED_ARRAY = ["BlockStored", *list(STORED_MAP.values())[1:], None, "future"]
STORED = BlocksStored(
    hashes=[2**64 - 1, 7],
    parent=5,
    token_ids=TOKENS,
    block_tokens=16,
    medium="GPU",
    adapter="a",
    extra_keys=(("a", "salt"), ("a",)),
    group=0,
    attention="full_attention",
)


def payload(*events: Any, rank: Any = 0) -> bytes:
    return msgspec.msgpack.encode([1.5, list(events), rank])


@pytest.mark.parametrize("event", [STORED_MAP, STORED_MAP | {"future": [1]}, STORED_ARRAY, STORED_ARRAY[:-2]])
def test_maps_and_arrays_are_the_same_event(event: Any) -> None:
    batch = decode_batch(payload(event, rank=3))
    assert (batch.unix_s, batch.rank, batch.refused, batch.unknown) == (1.5, 3, 0, 0)
    assert batch.events == [STORED]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "BlockStored", "block_hashes": [-9], "parent_block_hash": None, "token_ids": [1], "block_size": 1},
        ["BlockStored", [-9], None, [1], 1],
        ["BlockStored", [-9], None, [1], 1, None],
    ],
)
def test_omitted_fields_have_their_defaults_and_hashes_may_be_signed(event: Any) -> None:
    (stored,) = decode_batch(payload(event)).events
    assert stored == BlocksStored(hashes=[-9], parent=None, token_ids=[1], block_tokens=1)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (["BlockRemoved", [1, 2], "CPU"], BlocksRemoved([1, 2], "CPU")),
        ({"type": "BlockRemoved", "block_hashes": [b"raw"], "group_idx": 1}, BlocksRemoved([b"raw"], None, 1)),
        (["BlockRemoved", [1]], BlocksRemoved([1])),
        (["AllBlocksCleared"], AllBlocksCleared()),
        ({"type": "AllBlocksCleared"}, AllBlocksCleared()),
    ],
)
def test_removals_and_clears_are_read(event: Any, expected: Any) -> None:
    assert decode_batch(payload(event)).events == [expected]


def test_a_batch_without_a_rank_is_one_of_an_engine_without_ranks() -> None:
    assert decode_batch(msgspec.msgpack.encode([1.0, [["AllBlocksCleared"]]])).rank is None


def test_an_adapter_may_have_only_a_number() -> None:
    event = STORED_MAP | {"lora_name": None, "extra_keys": None}
    (stored,) = decode_batch(payload(event)).events
    assert isinstance(stored, BlocksStored)
    assert (stored.adapter, stored.extra_keys) == ("lora-id:1", ())


def test_extra_keys_of_other_types_become_text() -> None:
    (stored,) = decode_batch(payload(STORED_MAP | {"extra_keys": [["img", 3], None]})).events
    assert isinstance(stored, BlocksStored)
    assert stored.extra_keys == (("img", "3"), ())


@pytest.mark.parametrize(
    "bad",
    [
        STORED_MAP | {"token_ids": TOKENS[:-1]},
        STORED_MAP | {"block_size": 0},
        STORED_MAP | {"extra_keys": [["x"]]},
        STORED_MAP | {"token_ids": [[1, 2]] * 32},
        STORED_MAP | {"block_hashes": "no"},
        ["BlockRemoved"],
        7,
        None,
        [],
    ],
)
def test_a_bad_event_costs_itself_and_not_its_neighbours(bad: Any) -> None:
    batch = decode_batch(payload(STORED_MAP, bad, ["AllBlocksCleared"]))
    assert batch.events == [STORED, AllBlocksCleared()]
    assert (batch.refused, batch.unknown) == (1, 0)


def test_an_event_of_an_unknown_kind_is_counted_as_such() -> None:
    batch = decode_batch(payload({"type": "BlockTeleported"}, ["BlockWarmed", 1], STORED_MAP))
    assert (batch.events, batch.refused, batch.unknown) == ([STORED], 0, 2)


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\x90"


@pytest.mark.parametrize(
    "event",
    [nested(5000), b"\x92\xa3new" + nested(5000), b"\x82\xa4type\xabBlockStored\xa1x" + nested(5000)],
    ids=["no event", "unknown event", "unknown field"],
)
def test_what_is_nested_too_deep_is_refused(event: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_batch(b"\x92\xcb" + bytes(8) + b"\x91" + event)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93", msgspec.msgpack.encode({"events": []}), b"\x91\xcb"])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_batch(data)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
@example(b"\x93\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\x91\xd9\xff")
def test_random_bytes_are_a_batch_or_refused(data: bytes) -> None:
    _decode_or_refuse(data)


@given(values, st.lists(values, max_size=4), values)
def test_random_values_are_a_batch_or_refused(ts: Any, events: list[Any], rank: Any) -> None:
    _decode_or_refuse(msgspec.msgpack.encode([ts, events, rank]))


@given(st.dictionaries(st.sampled_from(sorted(STORED_MAP)), values), st.data())
def test_random_fields_in_an_event_cost_at_most_the_event(changes: dict[str, Any], data: st.DataObject) -> None:
    batch = decode_batch(payload(STORED_MAP | changes, STORED_MAP))
    assert batch.events[-1] == STORED
    assert len(batch.events) + batch.refused + batch.unknown == 2


@given(st.data())
def test_a_truncated_or_damaged_message_is_a_batch_or_refused(data: st.DataObject) -> None:
    whole = bytearray(payload(STORED_MAP, STORED_ARRAY, ["AllBlocksCleared"]))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    _decode_or_refuse(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


def _decode_or_refuse(data: bytes) -> None:
    try:
        batch = decode_batch(data)
    except DecodeError:
        return
    assert batch.refused >= 0
