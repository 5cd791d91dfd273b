"""Random histories: both implementations against each other and against a model that only knows what was asked."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from router.core.prefix import pack
from router.core.prefix.reference import ReferencePrefixIndex

_native = pytest.importorskip("router.core.prefix._native")

BRANCHES = st.lists(st.integers(0, 2), max_size=7)
"""A path in a tree: which branch to take at every level."""


def chain_of(branches: list[int]) -> bytes:
    """Give every node of the tree an id of its own, so that equal ids mean equal prefixes."""
    node, ids = 0, []
    for branch in branches:
        node = node * 3 + branch + 1
        ids.append(node)
    return pack(ids)


class Histories(RuleBasedStateMachine):
    """Apply every operation to both and compare all that can be seen after each."""

    @initialize(max_blocks=st.integers(1, 40))
    def start(self, max_blocks: int) -> None:
        self.native = _native.NativePrefixIndex(max_blocks=max_blocks)
        self.reference = ReferencePrefixIndex(max_blocks=max_blocks)
        self.slots: dict[int, int] = {}
        self.exact: set[int] = set()
        self.ever_exact = False
        self.chains: list[bytes] = [b""]

    def both(self, name: str, *args: object) -> object:
        expected = getattr(self.reference, name)(*args)
        assert getattr(self.native, name)(*args) == expected
        return expected

    @precondition(lambda self: len(self.slots) < 6)
    @rule(capacity=st.integers(1, 15))
    def add(self, capacity: int) -> None:
        slot = self.both("add_instance", capacity)
        assert slot == min(set(range(9)) - set(self.slots))
        self.slots[slot] = capacity

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.slots)))
        self.both("remove_instance", slot)
        del self.slots[slot]
        self.exact.discard(slot)

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), branches=BRANCHES)
    def insert_new(self, data: st.DataObject, branches: list[int]) -> None:
        chain = chain_of(branches)
        self.chains.append(chain)
        self.insert(data, chain)

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def insert_known(self, data: st.DataObject) -> None:
        self.insert(data, data.draw(st.sampled_from(self.chains)))

    def insert(self, data: st.DataObject, chain: bytes) -> None:
        slot = data.draw(st.sampled_from(sorted(self.slots)))
        self.both("insert", slot, chain)
        kept = min(len(chain) // 8, self.slots[slot], self.native.capacity)
        assert self.native.match(chain)[slot] >= kept

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.slots)))
        self.both("clear", slot)
        self.exact.discard(slot)
        assert self.native.resident(slot) == 0

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), capacity=st.integers(1, 15))
    def set_capacity(self, data: st.DataObject, capacity: int) -> None:
        slot = data.draw(st.sampled_from(sorted(self.slots)))
        self.both("set_capacity", slot, capacity)
        self.slots[slot] = capacity

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), branches=BRANCHES, from_depth=st.integers(0, 3))
    def discard(self, data: st.DataObject, branches: list[int], from_depth: int) -> None:
        slot = data.draw(st.sampled_from(sorted(self.slots)))
        self.both("discard", slot, chain_of(branches)[8 * from_depth :])
        self.exact.add(slot)
        self.ever_exact = True

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), branches=BRANCHES)
    def match(self, data: st.DataObject, branches: list[int]) -> None:
        known = data.draw(st.sampled_from(self.chains))
        self.both("match", known)
        self.both("match", known + pack(10_000 + i for i in range(len(branches))))
        self.both("match", chain_of(branches))

    @invariant()
    def all_gauges_agree_and_nothing_is_exceeded(self) -> None:
        self.reference.check_integrity()
        self.native.check_integrity()
        for name in ("blocks", "entries", "capacity"):
            assert getattr(self.native, name) == getattr(self.reference, name)
        if not self.ever_exact:
            assert self.native.evictions == self.reference.evictions
        assert self.native.entries <= self.native.capacity
        for slot, capacity in self.slots.items():
            assert self.both("resident", slot) <= capacity

    @invariant()
    def guessed_residency_is_prefix_closed(self) -> None:
        """What is resident of a chain is exactly what matches, so the matches of all chains cover all residency."""
        covered: dict[int, set[bytes]] = {slot: set() for slot in self.slots}
        for chain in self.chains:
            depths = self.native.match(chain)
            for slot in self.slots:
                covered[slot].update(chain[8 * i : 8 * i + 8] for i in range(depths[slot]))
        for slot in set(self.slots) - self.exact:
            assert len(covered[slot]) == self.native.resident(slot)


Histories.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
test_random_histories = Histories.TestCase


def test_both_implementations_offer_the_same() -> None:
    offered = (
        {name for name in vars(cls) if not name.startswith("_")}
        for cls in (_native.NativePrefixIndex, ReferencePrefixIndex)
    )
    native, reference = offered
    assert native == reference


@pytest.mark.parametrize(
    ("most", "gap"),
    [(9, [3, 11]), (40, [3, 11]), (40, [3, 11, 35, 107])],
    ids=["whole index full", "slot full", "long"],
)
def test_what_is_resident_behind_a_gap_is_not_evicted_for_the_gap(most: int, gap: list[int]) -> None:
    """Only an engine's own word makes gaps; the compiled index once counted what is behind one as still to come."""
    for cls in (_native.NativePrefixIndex, ReferencePrefixIndex):
        index = cls(max_blocks=most)
        slot = index.add_instance(5)
        index.store(slot, pack([3, 11, 35, 107, 322]))
        index.discard(slot, pack([3]))
        index.insert(slot, pack(gap))
        assert index.resident(slot) == 5
        index.check_integrity()
        assert index.match(pack([3, 11, 35, 107, 322])) == [5]
