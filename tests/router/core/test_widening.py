"""Who is brought the prefix of a hot class."""

from hypothesis import given
from hypothesis import strategies as st

from router.core.hotspot.widening import to_widen

LOADS = st.dictionaries(st.integers(0, 20), st.floats(0, 100))


@given(loads=LOADS, holders=st.frozensets(st.integers(0, 20)))
def test_everyone_that_lacks_it_once_the_least_loaded_first(loads: dict[int, float], holders: frozenset[int]) -> None:
    found = to_widen(loads, holders)
    assert sorted(found) == sorted(loads.keys() - holders)
    assert [loads[name] for name in found] == sorted(loads[name] for name in found)


def test_equal_loads_keep_their_order() -> None:
    assert to_widen({"c": 1, "a": 1, "b": 0}, {"x"}) == ["b", "c", "a"]
