"""Browsers get the newest frame, at most four times a second, and nothing is made for nobody."""

import asyncio
from collections.abc import Callable

import pytest

from controlplane.telemetry.feed import IDLE_INTERVAL_S, MIN_INTERVAL_S, Feed, Slot
from tests.fakes.hand_clock import HandClock


class Maker:
    """Counts the frames that were made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return f"frame {self.made}"


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Callable[[], None]]]:
    """Timers that the feed sets on its loop, run by the test instead of by time."""
    set_timers: list[tuple[float, Callable[[], None]]] = []

    class Loop:
        def call_later(self, delay_s: float, callback: Callable[[], None]) -> "Loop":
            set_timers[:] = [(delay_s, callback)]
            return self

        def cancel(self) -> None:
            set_timers.clear()

    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    return set_timers


async def test_a_slot_keeps_only_the_newest() -> None:
    slot = Slot()
    slot.put("old")
    slot.put("new")
    assert await slot.take() == "new"
    waiting = asyncio.ensure_future(slot.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    slot.put("next")
    assert await waiting == "next"


def test_nothing_is_made_while_nobody_looks(maker: Maker, clock: HandClock) -> None:
    feed = Feed(maker, clock)
    for _ in range(100):
        clock.advance(MIN_INTERVAL_S)
        feed.poke()
    assert maker.made == 0


async def test_who_comes_gets_a_frame_at_once(maker: Maker, clock: HandClock) -> None:
    feed = Feed(maker, clock)
    with feed.subscribe() as slot:
        assert await slot.take() == "frame 1"
    assert feed.subscribers == 0


def test_one_frame_is_made_for_all(
    maker: Maker, clock: HandClock, timers: list[tuple[float, Callable[[], None]]]
) -> None:
    feed = Feed(maker, clock)
    with feed.subscribe(), feed.subscribe(), feed.subscribe():
        assert maker.made == 1
        clock.advance(MIN_INTERVAL_S)
        feed.poke()
        timers[0][1]()
        assert maker.made == 2


def test_frames_come_at_most_four_times_a_second(
    maker: Maker, clock: HandClock, timers: list[tuple[float, Callable[[], None]]]
) -> None:
    feed = Feed(maker, clock)
    with feed.subscribe():
        clock.advance(0.1)
        for _ in range(10):
            feed.poke()
        assert len(timers) == 1
        assert timers[0][0] == pytest.approx(MIN_INTERVAL_S - 0.1)


def test_an_idle_feed_still_ticks_so_that_ages_grow(
    maker: Maker, clock: HandClock, timers: list[tuple[float, Callable[[], None]]]
) -> None:
    feed = Feed(maker, clock)
    with feed.subscribe():
        assert timers[0][0] == pytest.approx(IDLE_INTERVAL_S)
        clock.advance(IDLE_INTERVAL_S)
        timers[0][1]()
        assert maker.made == 2
        assert timers[0][0] == pytest.approx(IDLE_INTERVAL_S)
    assert timers == [], "the last to leave stops the clock"


def test_polling_does_not_make_more_than_sockets_would(maker: Maker, clock: HandClock) -> None:
    feed = Feed(maker, clock)
    for _ in range(5):
        feed.newest()
    assert maker.made == 1
    clock.advance(MIN_INTERVAL_S)
    assert feed.newest() == "frame 2"
