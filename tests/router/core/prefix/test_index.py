"""What the index promises, one behaviour a test."""

import random

import pytest

from router.core.prefix import pack
from router.core.prefix.reference import MAX_INSTANCES
from tests.router.core.prefix.conftest import NewIndex


def path(*ids: int) -> bytes:
    return pack(ids)


def test_a_match_is_the_number_of_leading_blocks_by_slot(new_index: NewIndex) -> None:
    index = new_index()
    a, b, c = (index.add_instance(100) for _ in range(3))
    index.insert(a, path(1, 2, 3, 4))
    index.insert(b, path(1, 2, 7, 8))
    assert index.match(path(1, 2, 3, 9)) == [3, 2, 0]
    assert index.match(path(2, 3)) == [0, 0, 0] or index.match(path(2, 3))[c] == 0
    assert (a, b, c) == (0, 1, 2)


def test_an_empty_chain_matches_nowhere_and_inserting_it_changes_nothing(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(10)
    index.insert(slot, b"")
    assert index.match(b"") == [0]
    assert (index.blocks, index.entries, index.resident(slot)) == (0, 0, 0)


def test_an_empty_fleet_matches_with_an_empty_list(new_index: NewIndex) -> None:
    assert new_index().match(path(1, 2)) == []


def test_a_chain_longer_than_the_capacity_keeps_its_first_blocks(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(3)
    index.insert(slot, path(1, 2, 3, 4, 5))
    assert index.match(path(1, 2, 3, 4, 5)) == [3]
    assert index.evictions == 0


def test_the_least_recently_used_leaf_goes_first(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(4)
    index.insert(slot, path(1, 2, 3))
    index.insert(slot, path(1, 9))
    index.insert(slot, path(1, 8))
    assert index.match(path(1, 2, 3)) == [2]
    assert index.match(path(1, 9)) == [2]
    assert index.match(path(1, 8)) == [2]
    assert index.evictions == 1


def test_touching_a_chain_keeps_it_from_eviction(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(4)
    index.insert(slot, path(1, 2))
    index.insert(slot, path(3, 4))
    index.insert(slot, path(1, 2))
    index.insert(slot, path(5, 6))
    assert index.match(path(1, 2)) == [2]
    assert index.match(path(3, 4)) == [0]


def test_a_chain_that_is_touched_again_still_loses_its_leaf_first(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(6)
    index.insert(slot, path(1, 2, 3))
    index.insert(slot, path(7, 8))
    index.insert(slot, path(1, 2, 3))
    index.insert(slot, path(4, 5, 6, 9))
    assert index.match(path(1, 2, 3)) == [2]
    assert index.match(path(7)) == [0]


def test_matching_is_no_use_and_changes_nothing(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(2)
    index.insert(slot, path(1))
    index.insert(slot, path(2))
    assert index.match(path(1)) == [1]
    index.insert(slot, path(3))
    assert index.match(path(1)) == [0]
    assert index.match(path(2)) == [1]


def test_removing_an_instance_frees_its_blocks_at_once_and_its_slot_for_the_next(new_index: NewIndex) -> None:
    index = new_index()
    slots = [index.add_instance(10) for _ in range(3)]
    for slot in slots:
        index.insert(slot, path(1, 2))
    index.insert(1, path(5, 6))
    index.remove_instance(1)
    assert (index.entries, index.blocks) == (4, 2)
    assert index.match(path(1, 2)) == [2, 0, 2]
    assert index.match(path(5, 6)) == [0, 0, 0]
    assert index.add_instance(10) == 1
    assert index.match(path(1, 2)) == [2, 0, 2]
    index.check_integrity()


def test_the_smallest_free_slot_is_used_first_and_the_match_ends_at_the_highest_one(new_index: NewIndex) -> None:
    index = new_index()
    for _ in range(5):
        index.add_instance(10)
    for slot in (4, 1, 3):
        index.remove_instance(slot)
    assert len(index.match(b"")) == 3
    assert [index.add_instance(10) for _ in range(3)] == [1, 3, 4]


def test_clearing_forgets_the_blocks_and_keeps_the_instance(new_index: NewIndex) -> None:
    index = new_index()
    a, b = index.add_instance(10), index.add_instance(10)
    index.insert(a, path(1, 2))
    index.insert(b, path(1))
    index.clear(a)
    assert index.match(path(1, 2)) == [0, 1]
    assert index.evictions == 0
    index.insert(a, path(1))
    assert index.match(path(1, 2)) == [1, 1]


def test_a_smaller_capacity_evicts_at_once(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(10)
    index.insert(slot, path(1, 2, 3))
    index.insert(slot, path(1, 5))
    index.set_capacity(slot, 2)
    assert index.match(path(1, 5)) == [2]
    assert index.match(path(1, 2)) == [1]
    assert index.evictions == 2


def test_at_the_hard_cap_the_instance_with_the_most_to_spare_gives_up_its_oldest(new_index: NewIndex) -> None:
    index = new_index(max_blocks=6)
    rich, poor = index.add_instance(100), index.add_instance(100)
    index.insert(rich, path(1, 2, 3, 4))
    index.insert(poor, path(7))
    index.insert(poor, path(8, 9))
    assert index.entries == index.capacity == 6
    assert index.match(path(1, 2, 3, 4)) == [3, 0]
    assert index.match(path(8, 9)) == [0, 2]
    index.insert(poor, path(21, 22, 23, 24, 25, 26, 27))
    assert index.match(path(21, 22, 23, 24, 25, 26, 27)) == [0, 6]
    index.check_integrity()


@pytest.mark.parametrize("instances", [1, 4, 5, 64, 65, 200])
def test_one_hot_prefix_is_seen_on_every_instance(new_index: NewIndex, instances: int) -> None:
    index = new_index()
    slots = [index.add_instance(1000) for _ in range(instances)]
    for slot in slots:
        index.insert(slot, path(1, 2, 3, 1000 + slot, 2000 + slot))
    assert index.match(path(1, 2, 3)) == [3] * instances
    for slot in slots:
        expected = [3] * instances
        expected[slot] = 5
        assert index.match(path(1, 2, 3, 1000 + slot, 2000 + slot)) == expected
    for slot in random.Random(1).sample(slots, instances):
        index.clear(slot)
        index.check_integrity()
    assert (index.blocks, index.entries) == (0, 0)


def test_as_many_instances_as_it_says_and_not_one_more(new_index: NewIndex) -> None:
    index = new_index()
    for _ in range(MAX_INSTANCES):
        slot = index.add_instance(8)
        index.insert(slot, path(1, slot))
    assert index.match(path(1, MAX_INSTANCES - 1))[-2:] == [1, 2]
    index.check_integrity()
    with pytest.raises(ValueError, match="1024 instances at most"):
        index.add_instance(8)


def test_ids_in_a_row_are_as_good_as_random_hashes(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(20_000)
    index.insert(slot, pack(range(20_000)))
    assert index.match(pack(range(20_000))) == [20_000]
    assert index.match(pack([0, 1, 20_001])) == [2]
    index.check_integrity()


def test_extreme_hashes_are_hashes(new_index: NewIndex) -> None:
    index = new_index()
    slot = index.add_instance(10)
    index.insert(slot, path(0, 2**64 - 1, 2**63))
    assert index.match(path(0, 2**64 - 1, 2**63)) == [3]


def test_where_events_tell_a_match_ends_at_the_first_missing_block(new_index: NewIndex) -> None:
    index = new_index()
    told, guessed = index.add_instance(100), index.add_instance(100)
    index.store(told, path(1, 2, 3, 4, 5))
    index.insert(guessed, path(1, 2, 3))
    index.discard(told, path(3, 77))
    assert index.match(path(1, 2, 3, 4, 5)) == [2, 3]
    index.store(told, path(3))
    assert index.match(path(1, 2, 3, 4, 5)) == [5, 3]
    index.discard(told, path(1))
    assert index.match(path(1, 2, 3, 4, 5)) == [0, 3]
    index.check_integrity()
    index.clear(told)
    index.insert(told, path(1, 2))
    assert index.match(path(1, 2, 3)) == [2, 3]


def test_a_chain_that_repeats_a_block_breaks_nothing(new_index: NewIndex) -> None:
    index = new_index(max_blocks=8)
    a, b = index.add_instance(4), index.add_instance(6)
    for chain in (path(1, 1, 1), path(1, 2, 1, 3), path(3, 2, 1, 3, 2, 1), path(9, 9, 1, 2), path(5, 6, 7, 8)):
        index.insert(a, chain)
        index.insert(b, chain)
        index.check_integrity()


def test_chains_that_come_back_in_any_order_are_whole_each_time(new_index: NewIndex) -> None:
    index, rng = new_index(max_blocks=12), random.Random(3)
    slots = [index.add_instance(8), index.add_instance(9)]
    for _ in range(2000):
        slot, chain = rng.choice(slots), path(*rng.choices(range(6), k=rng.randint(1, 8)))
        index.insert(slot, chain)
        assert index.match(chain)[slot] == len(chain) // 8
        index.check_integrity()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda i: i.insert(3, b""), IndexError),
        (lambda i: i.insert(-1, b""), IndexError),
        (lambda i: i.insert(5000, b""), IndexError),
        (lambda i: i.clear(1), IndexError),
        (lambda i: i.remove_instance(1), IndexError),
        (lambda i: i.resident(1), IndexError),
        (lambda i: i.set_capacity(1, 5), IndexError),
        (lambda i: i.store(1, b""), IndexError),
        (lambda i: i.discard(1, b""), IndexError),
        (lambda i: i.insert(0, b"1234567"), ValueError),
        (lambda i: i.match(b"123456789"), ValueError),
        (lambda i: i.add_instance(0), ValueError),
        (lambda i: i.add_instance(-5), ValueError),
        (lambda i: i.set_capacity(0, 0), ValueError),
    ],
)
def test_wrong_arguments_are_refused_and_nothing_is_changed(new_index: NewIndex, call, error) -> None:
    index = new_index()
    index.add_instance(10)
    index.insert(0, path(1, 2))
    with pytest.raises(error):
        call(index)
    assert index.match(path(1, 2)) == [2]
    index.check_integrity()


@pytest.mark.parametrize("max_blocks", [0, -1, 32_000_001])
def test_a_cap_out_of_range_is_refused(new_index: NewIndex, max_blocks: int) -> None:
    with pytest.raises(ValueError, match=f"max_blocks is {max_blocks}"):
        new_index(max_blocks=max_blocks)


def test_unique_prompts_leave_memory_flat_once_the_cap_is_reached(new_index: NewIndex) -> None:
    index = new_index(max_blocks=8192)
    slots = [index.add_instance(2048) for _ in range(6)]
    empty_bytes = index.memory_bytes
    rng = random.Random(7)

    def prompts(count: int) -> None:
        for _ in range(count):
            index.insert(rng.choice(slots), rng.randbytes(8 * 64))

    prompts(600)
    settled_bytes = index.memory_bytes
    prompts(2000)
    assert index.entries == 8192
    assert index.memory_bytes <= settled_bytes * 1.1
    assert index.memory_bytes - empty_bytes <= 8192 * 260
    index.check_integrity()
