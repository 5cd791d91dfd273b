"""Which class a request belongs to."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.hotspot.prefix_class import class_depth, class_id, class_key, holders, short_name
from router.core.instance import InstanceState
from router.core.prefix import PrefixIndex
from router.core.prefix.chain import pack
from tests.router.core.fleets import fleet


def test_the_key_is_the_chain_hash_at_the_depth() -> None:
    assert class_key(pack(range(1, 9)), 3) == pack([3])


def test_where_less_is_shared_the_key_is_that_of_the_deepest_shared_block() -> None:
    assert class_depth([0, 5, 2], 32) == 5
    assert class_depth([0, 50, 2], 32) == 32


def test_what_nobody_holds_is_in_no_class() -> None:
    assert class_depth([0, 0], 32) == 0
    assert class_depth([], 32) == 0


def test_ids_are_hex_and_texts_name_their_first_digits() -> None:
    key = bytes.fromhex("3f2a00112233aabb")
    assert (class_id(key), short_name(key)) == ("3f2a00112233aabb", "3f2a")


@given(shared=st.integers(1, 40), own=st.integers(0, 40), depth=st.integers(1, 40))
def test_requests_that_share_a_prefix_are_of_one_class(shared: int, own: int, depth: int) -> None:
    index = PrefixIndex()
    slot = index.add_instance(1000)
    common = list(range(1, shared + 1))
    index.insert(slot, pack([*common, *range(100, 100 + own)]))
    keys = set()
    for start in (200, 300):
        chain = pack([*common, *range(start, start + 40)])
        keys.add(class_key(chain, class_depth(index.match(chain), depth)))
    assert keys == {pack([min(shared, depth)])}


def test_holders_take_requests_and_hold_the_whole_class_prefix() -> None:
    ready, shallow, ejected, draining, warming = fleet(*[(0, 0)] * 5)
    views = [
        ready,
        shallow,
        replace(ejected, ejected=True),
        replace(draining, state=InstanceState.DRAINING),
        replace(warming, state=InstanceState.WARMING),
    ]
    assert [view.name for view in holders(views, [32, 31, 32, 32, 40], 32)] == ["i0", "i4"]
