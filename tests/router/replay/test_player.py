"""The player keeps to its schedule whatever the answers, and says where it could not."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from router.engine.instance import EngineInstance
from router.replay.call import BodyWriter, Call, FollowUp
from router.replay.client import HttpClient, Target
from router.replay.exchange import Exchange
from router.replay.player import SWING_PERIOD_S, Pace, Player
from router.replay.tally import Tally
from tests.fakes.step_clock import GatedClock
from tests.router.engine.serving import serving, until

WRITER = BodyWriter("tiny")


class Script:
    """A source with fixed arrivals; each call named in ``after`` is followed by another one."""

    def __init__(self, moments_s: list[float], after: int = 0) -> None:
        self.total = len(moments_s)
        self._moments_s = moments_s
        self._after = after
        self.ended: list[str | None] = []

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        for number, moment_s in enumerate(self._moments_s):
            yield moment_s, self._call(f"{number}")

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        self.ended.append(exchange and exchange.text)
        if self._after == 0:
            return None
        self._after -= 1
        return FollowUp(0.001, self._call("again"))

    def _call(self, name: str) -> Call:
        text = name.encode() * 40
        return Call(lambda: WRITER.prompt(text, 5), workload="w", session=name, keep_text=True)


@asynccontextmanager
async def player(
    engine: EngineInstance, script: Script, pace: Pace | None = None, port: int | None = None
) -> AsyncIterator[Player]:
    client = HttpClient(Target.parse(f"http://127.0.0.1:{port or engine.port}"), {})
    try:
        yield Player(script, client, WRITER.path, pace or Pace(), time.monotonic, Tally())
    finally:
        client.close()


async def test_arrivals_do_not_wait_for_answers() -> None:
    clock = GatedClock()
    async with serving(clock) as engine, player(engine, Script([0.0] * 20)) as replay:
        play = asyncio.create_task(replay.play())
        await until(lambda: engine.model.running + engine.model.waiting == 20)
        assert (replay.tally.sent, replay.tally.done) == (20, 0)
        clock.open()
        await play
        assert (replay.tally.done, replay.tally.failed, replay.tally.late) == (20, 0, 0)


async def test_a_limit_on_concurrency_makes_arrivals_late() -> None:
    clock = GatedClock()
    async with serving(clock) as engine, player(engine, Script([0.0] * 10), Pace(concurrency=3)) as replay:
        play = asyncio.create_task(replay.play())
        await until(lambda: replay.tally.late == 7)
        assert replay.tally.in_flight == 3
        clock.open()
        await play
        assert (replay.tally.done, replay.tally.late) == (10, 7)


async def test_a_follow_up_is_sent_after_the_answer_and_sees_its_text() -> None:
    script = Script([0.0], after=2)
    async with serving() as engine, player(engine, script) as replay:
        await replay.play()
    assert replay.tally.done == 3
    assert [len(text or "") for text in script.ended] == [20, 20, 20]


async def test_a_failed_request_is_counted_under_its_kind() -> None:
    script = Script([0.0, 0.0])
    async with serving(max_queued=0) as engine, player(engine, script) as replay:
        await replay.play()
    assert replay.tally.errors == {"stream_503": 2}
    assert replay.tally.error_examples == {}
    assert script.ended == [None, None]


async def test_the_first_text_of_an_error_is_kept() -> None:
    async with serving(api_key="secret") as engine, player(engine, Script([0.0, 0.0])) as replay:
        await replay.play()
    assert replay.tally.errors == {"http_401": 2}
    assert replay.tally.error_examples == {"http_401": '{"error":"Unauthorized"}'}


async def test_a_request_that_takes_too_long_is_a_timeout() -> None:
    clock = GatedClock()
    async with serving(clock) as engine, player(engine, Script([0.0]), Pace(timeout_s=0.05)) as replay:
        await replay.play()
        assert replay.tally.errors == {"timeout": 1}
        clock.open()
        await until(lambda: engine.model.running == 0)


async def test_stopping_drops_what_is_under_way() -> None:
    clock = GatedClock()
    async with serving(clock) as engine, player(engine, Script([0.0, 0.0, 1e6])) as replay:
        play = asyncio.create_task(replay.play())
        await until(lambda: engine.model.running + engine.model.waiting == 2)
        replay.stop()
        await play
        assert replay.tally.errors == {"dropped": 2}
        clock.open()
        await until(lambda: engine.model.running + engine.model.waiting == 0)


async def test_a_duration_ends_the_arrivals_but_not_the_answers() -> None:
    clock = GatedClock()
    script = Script([0.0, 1e6], after=5)
    async with serving(clock) as engine, player(engine, script, Pace(duration_s=0.05)) as replay:
        play = asyncio.create_task(replay.play())
        await until(lambda: replay.arrivals_closed)
        assert not play.done()
        clock.open()
        await play
    assert (replay.tally.sent, replay.tally.done) == (1, 1)


async def test_time_runs_as_fast_as_it_is_told_to() -> None:
    async with serving() as engine, player(engine, Script([0.0, 5e5]), Pace(speedup=1e7)) as replay:
        await replay.play()
    assert replay.tally.done == 2


def test_a_swinging_rate_keeps_the_order_and_the_mean() -> None:
    pace = Pace(swing=True)
    moments = [pace.wall_s(second / 10) for second in range(10 * int(SWING_PERIOD_S) + 1)]
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) > 0
    assert max(gaps) > 1.5 * min(gaps)
    assert moments[-1] == pytest.approx(SWING_PERIOD_S)
