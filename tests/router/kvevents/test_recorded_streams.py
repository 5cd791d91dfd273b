"""Every recorded stream decodes without a loss, and leaves the residency that its engine had."""

from collections import Counter
from typing import Any

import pytest

from router.core.prefix.token_chain import TokenHasher, pack_tokens
from router.kvevents.decoding import decode_batch
from router.kvevents.residency import EngineResidency
from tests.router.kvevents.recordings import Message, messages

HASHER = TokenHasher(seed=99)
WHOLE = (
    "kv-events-18100.jsonl",
    "kv-events-0.28.0-bs16.jsonl",
    "kv-events-arrayformat-bs16.jsonl",
    "kv-events-lora.jsonl",
    "kv-replay-from3.jsonl",
    "kv-replay-sglang.jsonl",
    "kv-sglang-flush.jsonl",
)
DAMAGED = "kv-events-sglang.jsonl"
"""Three of its lines were cut when they were recorded: as if their messages were lost."""


def expected_copies(batches: list[list[Any]]) -> Counter[int]:
    """Count copies the plain way, from the decoded JSON; blocks that are dropped without being there stay at 0."""
    copies: Counter[int] = Counter()
    for _, events, *_ in batches:
        for event in events:
            kind, hashes = (event["type"], event.get("block_hashes")) if isinstance(event, dict) else _array(event)
            if kind == "BlockStored":
                copies.update(hashes)
            elif kind == "BlockRemoved":
                copies.subtract([name for name in hashes if copies[name] > 0])
            else:
                copies.clear()
    return +copies


def _array(event: list[Any]) -> tuple[str, list[int]]:
    return event[0], event[1] if len(event) > 1 else []


def applied(recorded: list[Message]) -> EngineResidency:
    residency = EngineResidency(HASHER)
    for message in recorded:
        if message.batch is None:
            continue
        batch = decode_batch(message.payload)
        assert (batch.refused, batch.unknown) == (0, 0)
        residency.apply(batch)
        residency.check_integrity()
    return residency


@pytest.mark.parametrize("name", [*WHOLE, DAMAGED])
def test_the_residency_is_what_the_engine_said(name: str) -> None:
    recorded = list(messages(name))
    assert recorded
    residency = applied(recorded)
    copies = expected_copies([message.batch for message in recorded if message.batch is not None])
    assert {block: residency.copies(block).get("GPU", 0) for block in copies} == copies
    assert len(residency) == len(copies)


@pytest.mark.parametrize("name", WHOLE[:4])
def test_a_whole_recording_has_nothing_unexplained(name: str) -> None:
    counters = applied(list(messages(name))).counters
    assert (counters.orphans, counters.unknown_removals, counters.overflows, counters.bad_tokens) == (0, 0, 0, 0)


def test_a_damaged_recording_shows_what_was_lost() -> None:
    counters = applied(list(messages(DAMAGED))).counters
    assert counters.unknown_removals > 0


def test_no_engine_holds_more_copies_than_it_has_blocks() -> None:
    residency = EngineResidency(HASHER)
    seen: set[int] = set()
    for message in messages("kv-events-18100.jsonl"):
        _, events, *_ = message.batch or [0, []]
        seen |= {name for event in events for name in event.get("block_hashes", [])}
        residency.apply(decode_batch(message.payload))
        assert sum(residency.copies(name).get("GPU", 0) for name in seen) <= 1024


def test_old_and_new_encodings_of_one_workload_hold_the_same_prefixes() -> None:
    """The two engines hashed differently; what they hold is the same under our hashes, step by step."""
    old, new = EngineResidency(HASHER), EngineResidency(HASHER)
    pairs = zip(messages("kv-events-arrayformat-bs16.jsonl"), messages("kv-events-0.28.0-bs16.jsonl"), strict=True)
    for array, as_map in pairs:
        assert array.payload != as_map.payload
        old.apply(decode_batch(array.payload))
        new.apply(decode_batch(as_map.payload))
        assert old.chains == new.chains


def test_two_ranks_that_computed_the_same_prompt_hold_the_same_prefixes() -> None:
    ranks = {0: EngineResidency(HASHER), 1: EngineResidency(HASHER)}
    for message in messages("kv-events-dp2.jsonl"):
        batch = decode_batch(message.payload)
        assert batch.rank == message.port_rank
        ranks[message.port_rank].apply(batch)
    assert ranks[0].chains == ranks[1].chains != set()


def test_adapter_and_salt_hold_other_prefixes_and_each_is_found_by_its_prompt() -> None:
    residency = applied(list(messages("kv-events-lora.jsonl")))
    (_, events, *_) = next(messages("kv-events-lora.jsonl")).batch or [0, []]
    packed = pack_tokens(events[0]["token_ids"])
    wanted = [(None, None), ("lora-a", None), ("lora-a", "s")]
    chains = [HASHER.chain(packed, 32, adapter, salt) for adapter, salt in wanted]
    assert len(set(chains)) == 3
    assert {chain[i : i + 8] for chain in chains for i in (0, 8)} == {
        block.to_bytes(8, "little") for block in residency.chains
    }


def test_a_prompt_with_a_salt_is_found_in_an_engine_without_adapters() -> None:
    recorded = list(messages("kv-events-0.28.0-bs16.jsonl"))
    residency = applied(recorded[:2])
    packed = pack_tokens((recorded[0].batch or [])[1][0]["token_ids"])
    for salt in (None, "z"):
        chain = HASHER.chain(packed, 16, cache_salt=salt)
        assert {int.from_bytes(chain[i : i + 8], "little") for i in range(0, len(chain), 8)} <= residency.chains


def test_a_reset_and_a_flush_leave_nothing() -> None:
    assert len(applied(list(messages("kv-events-0.28.0-bs16.jsonl")))) == 0
    sglang = list(messages("kv-replay-sglang.jsonl"))
    assert len(applied(sglang)) > 0
    assert len(applied(sglang + list(messages("kv-sglang-flush.jsonl")))) == 0


def test_a_replay_is_the_end_of_what_was_published() -> None:
    published = {message.number: message.batch for message in messages("kv-events-18100.jsonl")}
    replayed = [message for message in messages("kv-replay-from3.jsonl") if message.batch is not None]
    assert [message.number for message in replayed] == [number for number in published if number >= 3]
    assert all(message.batch == published[message.number] for message in replayed)
