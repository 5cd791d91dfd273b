"""Applying a configuration keeps what stays true and drops the rest."""

import pytest
from msgspec.structs import replace

from router.config import InstanceConfig
from router.core.instance import InstanceState
from router.core.prefix.chain import pack
from router.state.errors import UnknownInstance
from router.state.report import EngineReport
from tests.router.state.test_booking import book, fleet_of

CHAIN = pack(range(1, 9))


def config(number: int, **changes: object) -> InstanceConfig:
    plain = InstanceConfig(id=f"id-{number}", name=f"gpu-{number}", url=f"http://127.0.0.1:{9000 + number}")
    return replace(plain, **changes)


def test_counters_and_residency_survive_a_new_document() -> None:
    fleet = fleet_of(1)
    book(fleet, 128, CHAIN)
    change = fleet.apply([config(0, state=InstanceState.DRAINING), config(1)], now_s=0.0)
    assert change.added == ("id-1",)
    assert change.reset == ()
    assert fleet.views[0].bs == 1
    assert fleet.views[0].state is InstanceState.DRAINING
    assert fleet.index.match(CHAIN)[0] == 8


@pytest.mark.parametrize("changes", [{"epoch": 2}, {"url": "http://127.0.0.1:9999"}])
def test_a_new_epoch_or_address_drops_residency_and_reports_but_not_bookings(changes: dict[str, object]) -> None:
    fleet = fleet_of(1)
    book(fleet, 128, CHAIN)
    fleet.report(fleet.by_slot(0), EngineReport(running=5, waiting=0), now_s=1.0, own_requests=1)
    assert fleet.views[0].bs == 5
    change = fleet.apply([config(0, **changes)], now_s=0.0)
    assert change.reset == ("id-0",)
    assert fleet.index.match(CHAIN)[0] == 0
    assert fleet.views[0].bs == 1


def test_removing_an_instance_frees_its_index_at_once() -> None:
    fleet = fleet_of(2)
    for _ in range(2):
        book(fleet, 128, CHAIN)
    fleet.apply([config(1)], now_s=0.0)
    assert [view.name for view in fleet.views] == ["gpu-1"]
    assert fleet.index.blocks == 8
    fleet.apply([], now_s=0.0)
    assert fleet.index.blocks == 0
    with pytest.raises(UnknownInstance):
        fleet.by_id("id-0")


def test_a_report_adds_what_others_put_there_and_own_requests_still_move() -> None:
    fleet = fleet_of(1)
    bookings = [book(fleet) for _ in range(3)]
    fleet.report(fleet.by_slot(0), EngineReport(running=4, waiting=1), now_s=1.0, own_requests=3)
    assert fleet.views[0].bs == 5
    bookings[0].end()
    assert fleet.views[0].bs == 4


def test_a_report_below_our_bookings_never_lowers_bs() -> None:
    fleet = fleet_of(1)
    for _ in range(3):
        book(fleet)
    fleet.report(fleet.by_slot(0), EngineReport(running=0, waiting=0), now_s=1.0, own_requests=3)
    assert fleet.views[0].bs == 3


def test_a_report_with_nothing_in_it_is_not_read_as_idle() -> None:
    fleet = fleet_of(1)
    book(fleet)
    fleet.report(fleet.by_slot(0), EngineReport(), now_s=1.0, own_requests=1)
    assert fleet.views[0].bs == 1
    assert fleet.views[0].kv_use is None


def test_reported_capacity_bounds_residency() -> None:
    fleet = fleet_of(1)
    fleet.report(fleet.by_slot(0), EngineReport(kv_capacity_tokens=64), now_s=0.0, own_requests=0)
    book(fleet, 128, CHAIN)
    assert fleet.index.match(CHAIN)[0] == 4


def test_a_capacity_beyond_what_the_index_holds_is_what_it_holds() -> None:
    fleet = fleet_of(1)
    assert fleet.apply([config(0, kv_capacity_tokens=2**62), config(1, kv_capacity_tokens=2**62)], now_s=0.0).added
    fleet.report(fleet.by_slot(0), EngineReport(kv_capacity_tokens=2**62), now_s=0.0, own_requests=0)
    book(fleet, 128, CHAIN)
    assert fleet.index.match(CHAIN)[0] == 8


def test_instances_marked_removed_leave_the_fleet() -> None:
    fleet = fleet_of(1)
    assert fleet.apply([config(0, state=InstanceState.REMOVED)], now_s=0.0).removed == ("id-0",)
    assert len(fleet) == 0
