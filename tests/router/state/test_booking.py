"""Counters are moved by bookings alone, and every booking is released exactly once."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config import InstanceConfig
from router.core.decide import decide
from router.core.errors import CounterFault
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.prefix.chain import pack
from router.core.request import Request
from router.state.booking import Booking, BookingState
from router.state.errors import BookingFault
from router.state.fleet import Fleet


def fleet_of(count: int) -> Fleet:
    fleet = Fleet(PrefixIndex(max_blocks=10_000))
    fleet.apply(
        [InstanceConfig(id=f"id-{i}", name=f"gpu-{i}", url=f"http://127.0.0.1:{9000 + i}") for i in range(count)],
        now_s=0.0,
    )
    return fleet


def book(fleet: Fleet, prompt_tokens: int = 160, chain: bytes = b"") -> Booking:
    request = Request("r", "m", prompt_tokens)
    decision = decide(request, fleet.views, fleet.index.match(chain), Policy(), Random(0))
    return fleet.book(decision, chain, now_s=0.0)


def counters(fleet: Fleet) -> list[tuple[int, int, int, int]]:
    return [(v.bs, v.waiting, v.queued_prefill_tokens, v.active_kv_tokens) for v in fleet.views]


def test_booking_moves_every_counter_at_once() -> None:
    fleet = fleet_of(1)
    book(fleet, prompt_tokens=160)
    assert counters(fleet) == [(1, 1, 160, 160)]


def test_the_first_byte_releases_the_queued_prefill_and_the_end_releases_the_rest() -> None:
    fleet = fleet_of(1)
    booking = book(fleet)
    booking.first_byte()
    assert counters(fleet) == [(1, 0, 0, 160)]
    booking.end()
    assert counters(fleet) == [(0, 0, 0, 0)]


def test_an_end_before_the_first_byte_releases_everything() -> None:
    fleet = fleet_of(1)
    book(fleet).end()
    assert counters(fleet) == [(0, 0, 0, 0)]


def test_a_second_release_is_a_fault() -> None:
    booking = book(fleet_of(1))
    booking.end()
    with pytest.raises(BookingFault):
        booking.end()
    with pytest.raises(BookingFault):
        booking.first_byte()


def test_a_second_first_byte_is_a_fault() -> None:
    booking = book(fleet_of(1))
    booking.first_byte()
    with pytest.raises(BookingFault):
        booking.first_byte()


def test_a_counter_never_becomes_negative() -> None:
    fleet = fleet_of(1)
    with pytest.raises(CounterFault, match="gpu-0"):
        fleet.by_slot(0).move(requests=-1)
    assert counters(fleet) == [(0, 0, 0, 0)]


def test_hits_are_not_queued_again() -> None:
    fleet = fleet_of(1)
    chain = pack(range(10))
    book(fleet, 160, chain)
    book(fleet, 160, chain)
    # The second request finds 9 whole blocks (never all of its 160 tokens) and queues 16 tokens.
    assert fleet.views[0].queued_prefill_tokens == 160 + 16


def test_a_hundred_equal_requests_spread_evenly() -> None:
    fleet = fleet_of(8)
    for _ in range(100):
        book(fleet)
    assert all(abs(view.bs - 12.5) <= 2 for view in fleet.views)


def test_a_booking_outlives_its_instance() -> None:
    fleet = fleet_of(2)
    booking = book(fleet)
    fleet.apply([], now_s=0.0)
    booking.first_byte()
    booking.end()
    assert booking.state is BookingState.RELEASED
    assert fleet.views == []


@given(st.lists(st.tuples(st.sampled_from(["book", "first", "end"]), st.integers(0, 1_000)), max_size=60))
def test_counters_always_equal_the_sum_of_open_bookings(steps: list[tuple[str, int]]) -> None:
    fleet = fleet_of(3)
    open_bookings: list[Booking] = []
    for action, number in steps:
        if action == "book":
            open_bookings.append(book(fleet, prompt_tokens=1 + number))
        elif open_bookings:
            booking = open_bookings[number % len(open_bookings)]
            if action == "end":
                booking.end()
                open_bookings.remove(booking)
            elif booking.state is BookingState.BOOKED:
                booking.first_byte()
    for instance in fleet:
        mine = [b for b in open_bookings if b.instance is instance]
        waiting = [b for b in mine if b.state is BookingState.BOOKED]
        view = fleet.views[instance.position or 0]
        assert view.bs == len(mine)
        assert view.waiting == len(waiting)
        assert view.queued_prefill_tokens == sum(b.new_tokens for b in waiting)
        assert view.active_kv_tokens == sum(b.kv_tokens for b in mine)
    for booking in open_bookings:
        booking.end()
    assert counters(fleet) == [(0, 0, 0, 0)] * 3
