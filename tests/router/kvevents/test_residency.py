"""References are counted per medium, prefixes are named by their tokens, and memory is bounded."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.prefix.token_chain import TokenHasher, pack_tokens
from router.kvevents.events import AllBlocksCleared, BlocksRemoved, BlocksStored, EventBatch, KvEvent
from router.kvevents.residency import Changes, EngineResidency

HASHER = TokenHasher(seed=5)


def stored(names: list[int], parent: int | None = None, **fields: object) -> BlocksStored:
    """Blocks of two tokens; the tokens are those of the name, so that equal names mean equal blocks."""
    tokens = [token for name in names for token in (name, name + 1)]
    return BlocksStored(**{"hashes": names, "parent": parent, "token_ids": tokens, "block_tokens": 2, **fields})


def apply(residency: EngineResidency, *events: KvEvent) -> Changes:
    changes = residency.apply(EventBatch(0.0, list(events)))
    residency.check_integrity()
    return changes


def chain_of(*names: int, adapter: str | None = None) -> bytes:
    return HASHER.chain(pack_tokens([token for name in names for token in (name, name + 1)]), 2, adapter)


def test_a_block_is_gone_with_its_last_copy() -> None:
    residency = EngineResidency(HASHER)
    assert apply(residency, stored([10, 20])).stored == chain_of(10, 20)
    assert apply(residency, stored([20], parent=10)).present == {}
    assert residency.copies(20) == {"GPU": 2}
    assert apply(residency, BlocksRemoved([20], "GPU")).present == {}
    assert apply(residency, BlocksRemoved([20], "GPU")).removed == chain_of(10, 20)[8:]
    assert len(residency) == 1


def test_a_block_is_gone_with_its_last_medium() -> None:
    residency = EngineResidency(HASHER)
    apply(residency, stored([10]), stored([10], medium="CPU"), stored([10], medium="CPU"))
    assert residency.copies(10) == {"GPU": 1, "CPU": 2}
    assert apply(residency, BlocksRemoved([10], "GPU")).present == {}
    assert apply(residency, BlocksRemoved([10], "CPU")).present == {}
    assert apply(residency, BlocksRemoved([10], "CPU")).removed == chain_of(10)


def test_a_removal_from_a_medium_without_a_copy_changes_nothing() -> None:
    residency = EngineResidency(HASHER)
    apply(residency, stored([10]))
    assert apply(residency, BlocksRemoved([10], "CPU"), BlocksRemoved([11])).present == {}
    assert residency.counters.unknown_removals == 2
    assert len(residency) == 1


def test_splitting_a_run_over_events_does_not_change_its_names() -> None:
    whole, parts = EngineResidency(HASHER), EngineResidency(HASHER)
    apply(whole, stored([1, 2, 3, 4]))
    apply(parts, stored([1]), stored([2, 3], parent=1), stored([4], parent=3))
    assert whole.chains == parts.chains


def test_blocks_after_an_unknown_parent_wait_for_it() -> None:
    residency = EngineResidency(HASHER)
    assert apply(residency, stored([3], parent=2)).present == {}
    assert residency.counters.orphans == 1
    assert (len(residency), residency.chains) == (1, set())
    assert apply(residency, stored([1, 2, 3])).stored == chain_of(1, 2, 3)
    assert residency.copies(3) == {"GPU": 2}


def test_what_comes_and_goes_in_one_batch_is_gone() -> None:
    residency = EngineResidency(HASHER)
    changes = apply(residency, stored([10]), BlocksRemoved([10]))
    assert (changes.stored, changes.removed) == (b"", chain_of(10))
    again = apply(residency, stored([10]), BlocksRemoved([10]), stored([10]))
    assert (again.stored, again.removed) == (chain_of(10), b"")


def test_a_clear_forgets_what_came_before_and_not_what_comes_after() -> None:
    residency = EngineResidency(HASHER)
    apply(residency, stored([10]))
    changes = apply(residency, stored([20]), AllBlocksCleared(), stored([30]))
    assert changes.cleared
    assert (changes.stored, changes.removed) == (chain_of(30), b"")


def test_two_engine_hashes_for_one_prefix_are_one_prefix() -> None:
    """Old engines do not say that a salt made the difference."""
    residency = EngineResidency(HASHER)
    apply(residency, stored([10]))
    assert apply(residency, stored([99], token_ids=[10, 11])).stored == chain_of(10)
    assert apply(residency, BlocksRemoved([10])).present == {}
    assert apply(residency, BlocksRemoved([99])).removed == chain_of(10)


def test_other_cache_groups_are_counted_but_not_followed() -> None:
    residency = EngineResidency(HASHER)
    window = stored([10], group=1, attention="sliding_window")
    full = stored([10], group=0, attention="full_attention")
    assert apply(residency, window, full, BlocksRemoved([10], "GPU", group=1)).stored == chain_of(10)
    assert residency.counters.other_groups == 2
    assert apply(residency, BlocksRemoved([10], "GPU", group=0)).removed == chain_of(10)


def test_more_blocks_than_can_be_are_forgotten_and_counted() -> None:
    residency = EngineResidency(HASHER, max_blocks=100)
    for start in range(0, 1000, 10):
        apply(residency, stored(list(range(start, start + 10))))
        assert len(residency) <= 100
    assert residency.counters.overflows > 0


def test_token_ids_that_are_none_are_counted() -> None:
    residency = EngineResidency(HASHER)
    apply(residency, stored([10], token_ids=[-1, 2**40]))
    assert residency.counters.bad_tokens == 1
    assert residency.chains == set()


@pytest.mark.parametrize("salt", [None, "s"])
@pytest.mark.parametrize("adapter", [None, "a"])
def test_a_prompts_chain_is_what_its_blocks_are_called(adapter: str | None, salt: str | None) -> None:
    extra = tuple(tuple(key for key in (adapter, salt if n == 0 else None) if key) for n in range(3))
    residency = EngineResidency(HASHER)
    apply(residency, stored([1, 2, 3], adapter=adapter, extra_keys=extra if adapter or salt else ()))
    packed = pack_tokens([1, 2, 2, 3, 3, 4])
    chain = HASHER.chain(packed, 2, adapter, salt)
    assert {int.from_bytes(chain[i : i + 8], "little") for i in range(0, 24, 8)} == residency.chains


def test_a_prompt_is_matched_up_to_its_first_missing_block() -> None:
    residency = EngineResidency(HASHER)
    apply(residency, stored([1, 2, 3]))
    assert [residency.matched(chain_of(*names)) for names in ((1, 2, 3), (1, 2, 9), (9, 2, 3), ())] == [3, 2, 0, 0]
    apply(residency, BlocksRemoved([2]))
    assert residency.matched(chain_of(1, 2, 3)) == 1


def test_a_chain_covers_whole_blocks_only() -> None:
    packed = pack_tokens([1, 2, 3, 4, 5])
    assert HASHER.chain(packed, 2) == HASHER.chain(packed[:16], 2)
    assert HASHER.chain(packed[:4], 2) == b""


events = st.one_of(
    st.builds(lambda name, medium: stored([name], medium=medium), st.integers(0, 5), st.sampled_from(["GPU", "CPU"])),
    st.builds(lambda name, medium: BlocksRemoved([name], medium), st.integers(0, 5), st.sampled_from(["GPU", "CPU"])),
)


@given(st.lists(events | st.just(AllBlocksCleared()), max_size=40))
def test_copies_are_counted_like_copies(history: list[KvEvent]) -> None:
    residency = EngineResidency(HASHER)
    plain: Counter[tuple[int, str]] = Counter()
    known: set[bytes] = set()
    for event in history:
        changes = apply(residency, event)
        known = set() if changes.cleared else known
        known |= {changes.stored[i : i + 8] for i in range(0, len(changes.stored), 8)}
        known -= {changes.removed[i : i + 8] for i in range(0, len(changes.removed), 8)}
        if isinstance(event, AllBlocksCleared):
            plain.clear()
        elif isinstance(event, BlocksStored):
            plain[event.hashes[0], event.medium] += 1
        elif plain[event.hashes[0], event.medium] > 0:
            plain[event.hashes[0], event.medium] -= 1
    assert len(residency) == len({name for name, _ in +plain})
    assert known == {chain.to_bytes(8, "little") for chain in residency.chains}
