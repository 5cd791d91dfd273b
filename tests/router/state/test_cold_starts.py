"""When an instance is cold, and until when."""

from random import Random

import pytest
from msgspec.structs import replace

from router.config import InstanceConfig
from router.core.instance import InstanceState
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.prefix.chain import pack
from router.core.request import Request
from router.core.terms import MOST_COLD_START_S, ColdStart
from router.state.fleet import Fleet

POLICY = Policy(cold_start=ColdStart())


def config(number: int, **changes: object) -> InstanceConfig:
    return replace(InstanceConfig(id=f"id-{number}", name=f"i{number}", url=f"http://x{number}"), **changes)


def at_work(now_s: float = 100.0) -> Fleet:
    """Two instances that hold ten blocks each."""
    fleet = Fleet(PrefixIndex())
    fleet.apply([config(0), config(1)], 0.0)
    for start in (0, 100):
        request(fleet, list(range(start, start + 10)), now_s)
    return fleet


def request(fleet: Fleet, blocks: list[int], now_s: float) -> None:
    decision = fleet.decide(Request("r", "m", 160), pack(blocks), POLICY, Random(0), now_s)
    fleet.book(decision, pack(blocks), now_s)


def cold_since(fleet: Fleet) -> list[float | None]:
    return [view.cold_since_s for view in fleet.views]


def test_the_first_instances_of_a_fleet_are_not_cold() -> None:
    assert cold_since(at_work()) == [None, None]


def test_one_that_joins_a_fleet_at_work_is_cold() -> None:
    fleet = at_work()
    fleet.apply([config(0), config(1), config(2)], 150.0)
    assert cold_since(fleet) == [None, None, 150.0]


def test_one_that_is_warming_is_cold_until_the_control_plane_calls_it_ready() -> None:
    fleet = Fleet(PrefixIndex())
    fleet.apply([config(0, state=InstanceState.WARMING)], 5.0)
    assert cold_since(fleet) == [5.0]
    fleet.apply([config(0, state=InstanceState.WARMING)], 9.0)
    assert cold_since(fleet) == [5.0]
    fleet.apply([config(0, state=InstanceState.READY)], 20.0)
    assert cold_since(fleet) == [None]
    fleet.apply([config(0, state=InstanceState.WARMING)], 30.0)
    assert cold_since(fleet) == [30.0]


@pytest.mark.parametrize("changes", [{"epoch": 2}, {"url": "http://elsewhere"}])
def test_one_that_lost_its_cache_is_cold(changes: dict[str, object]) -> None:
    fleet = at_work()
    fleet.apply([config(0, **changes), config(1)], 150.0)
    assert cold_since(fleet) == [150.0, None]


def test_one_that_restarted_is_cold() -> None:
    fleet = at_work()
    fleet.forget_residency(fleet.by_id("id-1"), 150.0)
    assert cold_since(fleet) == [None, 150.0]


def test_it_is_warm_when_it_holds_as_many_blocks_as_the_others_on_average() -> None:
    fleet = at_work()
    fleet.forget_residency(fleet.by_id("id-1"), 150.0)
    slot = fleet.by_id("id-1").slot
    fleet.index.insert(slot, pack(range(500, 504)))
    request(fleet, list(range(10)), 160.0)
    assert fleet.views[1].warmth == pytest.approx(0.4)
    assert cold_since(fleet) == [None, 150.0]
    fleet.index.insert(slot, pack(range(600, 606)))
    request(fleet, list(range(10)), 162.0)
    assert cold_since(fleet) == [None, None]


def test_a_fleet_of_cold_instances_waits_for_time() -> None:
    fleet = at_work()
    for name in ("id-0", "id-1"):
        fleet.forget_residency(fleet.by_id(name), 150.0)
    request(fleet, list(range(10)), 160.0)
    assert cold_since(fleet) == [150.0, 150.0]
    request(fleet, list(range(10)), 151.0 + MOST_COLD_START_S)
    assert cold_since(fleet) == [None, None]


def test_moving_counters_keeps_the_cold_start() -> None:
    fleet = at_work()
    fleet.forget_residency(fleet.by_id("id-1"), 150.0)
    fleet.by_id("id-1").move(requests=1)
    fleet.eject(fleet.by_id("id-1"), True)
    fleet.apply([config(0), config(1)], 160.0)
    assert cold_since(fleet) == [None, 150.0]


def test_for_a_shadow_policy_a_cold_start_ends_as_well() -> None:
    fleet = at_work()
    fleet.apply([config(0), config(1), config(2)], 150.0)
    chain = pack(list(range(900, 910)))

    def offset_of_the_new_one(now_s: float) -> int:
        decision = fleet.imagine(Request("r", "m", 160), chain, POLICY, Random(0), now_s)
        return next(candidate.p_offset for candidate in decision.candidates if candidate.view.name == "i2")

    assert offset_of_the_new_one(151.0) == ColdStart().p_offset
    assert offset_of_the_new_one(150.0 + ColdStart().duration_s) == 0
