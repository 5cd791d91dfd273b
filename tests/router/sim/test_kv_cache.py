"""The radix cache behaves as a pool of single blocks with one queue would."""

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.sim.errors import EngineFault
from router.sim.kv_cache import BlockCache, ClearedBlocks, Node, RemovedBlocks, StoredBlocks
from tests.router.sim.driving import chain


class PlainPool:
    """Block by block: uses counted, unused ones in a queue, the tail of a prompt before its head."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.uses: dict[int, int] = {}
        self.queue: OrderedDict[int, None] = OrderedDict()

    def matched(self, ids: list[int]) -> int:
        return next((i for i, block in enumerate(ids) if block not in self.uses), len(ids))

    def use(self, ids: list[int]) -> bool:
        known = self.matched(ids)
        unused = sum(block in self.queue for block in ids[:known])
        if len(ids) - known > self.capacity - len(self.uses) + len(self.queue) - unused:
            return False
        for block in ids[:known]:
            self.queue.pop(block, None)
            self.uses[block] += 1
        while len(self.uses) + len(ids) - known > self.capacity:
            del self.uses[self.queue.popitem(last=False)[0]]
        for block in ids[known:]:
            self.uses[block] = 1
        return True

    def release(self, ids: list[int]) -> None:
        for block in reversed(ids):
            self.uses[block] -= 1
            if self.uses[block] == 0:
                self.queue[block] = None


def use(cache: BlockCache, ids: list[int]) -> Node | None:
    packed = chain(*ids)
    match = cache.match(packed, len(ids))
    if len(ids) - match.blocks > cache.available - match.unpinned:
        return None
    node = cache.pin(match)
    cache.make_room(len(ids) - match.blocks)
    return cache.extend(node, packed, match.blocks, len(ids), "r")


PROMPTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 6)), min_size=1, max_size=40)


def ids_of(stem: int, branch: int, length: int) -> list[int]:
    """A tree of prompts: three stems of two blocks, four branches of each."""
    return [stem * 100 + i if i < 2 else (stem * 10 + branch) * 1000 + i for i in range(length)]


@settings(max_examples=200, deadline=None)
@given(PROMPTS, st.integers(6, 20), st.data())
def test_hits_and_evictions_equal_those_of_single_blocks(
    prompts: list[tuple[int, int, int]], capacity: int, data: st.DataObject
) -> None:
    cache, pool = BlockCache(capacity, record_events=True), PlainPool(capacity)
    resident: set[bytes] = set()
    held: list[tuple[Node, list[int]]] = []
    for prompt in prompts:
        ids = ids_of(*prompt)
        assert cache.match(chain(*ids), len(ids)).blocks == pool.matched(ids)
        node = use(cache, ids)
        assert (node is not None) == pool.use(ids)
        if node is not None:
            held.append((node, ids))
        while held and data.draw(st.booleans()):
            node, ids = held.pop(data.draw(st.integers(0, len(held) - 1)))
            cache.release(node)
            pool.release(ids)
        for event in cache.take_events():
            blocks = {event.blocks[i : i + 8] for i in range(0, len(event.blocks), 8)}  # type: ignore[union-attr]
            resident = resident | blocks if isinstance(event, StoredBlocks) else resident - blocks
        cache.check_integrity()
        assert resident == {chain(block) for block in pool.uses}


def test_a_tail_is_evicted_before_its_head() -> None:
    cache = BlockCache(4, record_events=True)
    node = use(cache, [1, 2, 3, 4])
    assert node is not None
    cache.release(node)
    cache.take_events()
    cache.make_room(2)
    assert cache.take_events() == [RemovedBlocks(chain(3, 4))]
    assert cache.match(chain(1, 2, 3, 4), 4).blocks == 2


def test_a_split_keeps_the_parent_of_later_blocks() -> None:
    cache = BlockCache(10, record_events=True)
    assert use(cache, [1, 2, 3]) is not None
    assert use(cache, [1, 2, 9]) is not None
    assert cache.take_events() == [
        StoredBlocks("r", 0, None, chain(1, 2, 3)),
        StoredBlocks("r", 2, chain(2), chain(9)),
    ]


def test_private_blocks_take_room_from_cached_ones() -> None:
    cache = BlockCache(4)
    node = use(cache, [1, 2, 3])
    assert node is not None
    cache.release(node)
    cache.take_private(3)
    assert (cache.cached, cache.private, cache.available) == (1, 3, 1)
    with pytest.raises(EngineFault, match="than there are"):
        cache.take_private(2)


def test_releasing_twice_is_a_fault() -> None:
    cache = BlockCache(4)
    node = use(cache, [1])
    assert node is not None
    cache.release(node)
    with pytest.raises(EngineFault, match="released twice"):
        cache.release(node)


def test_clearing_says_so() -> None:
    cache = BlockCache(4, record_events=True)
    node = use(cache, [1])
    assert node is not None
    cache.release(node)
    cache.take_events()
    cache.clear()
    assert cache.take_events() == [ClearedBlocks()]
    assert cache.match(chain(1), 1).blocks == 0
