"""Sending calls on time. Open loop: an arrival never waits for an answer, unless ``concurrency`` says how many may be
under way; then those that have to wait are counted as late, because the load was not what was asked for.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from router.replay.call import Call, Source
from router.replay.client import HttpClient
from router.replay.errors import ExchangeError
from router.replay.exchange import Exchange
from router.replay.tally import Tally

SWING = 0.3
"""How far the time between arrivals swings around its mean, as a share of it (below 1, or time would go back)."""
SWING_PERIOD_S = 180.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How calls are sent: traffic time runs ``speedup`` times as fast as the wall clock; limits in wall seconds."""

    speedup: float = 1.0
    concurrency: int | None = None
    duration_s: float | None = None
    timeout_s: float = 600.0
    workload: str | None = None
    """What every call is labelled with, instead of its own workload."""
    swing: bool = False
    """Whether the rate of arrivals swings gently around its mean, as live traffic does."""

    def wall_s(self, due_s: float) -> float:
        """Return when (seconds since the start) something is due that the traffic has at ``due_s``."""
        moment_s = due_s / self.speedup
        if not self.swing:
            return moment_s
        turn = 2 * math.pi / SWING_PERIOD_S
        return moment_s + SWING / turn * math.sin(turn * moment_s)


class Player:
    """Plays one source against one client. :meth:`play` once; :meth:`stop` ends it early."""

    def __init__(
        self, source: Source, client: HttpClient, path: str, pace: Pace, now: Callable[[], float], tally: Tally
    ) -> None:
        self._source = source
        self._client = client
        self._path = path
        self._pace = pace
        self._now = now
        self.tally = tally
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._backlog: deque[tuple[float, Call]] = deque()
        self._idle = asyncio.Event()
        self._stopped = asyncio.Event()
        self._arriving = True

    @property
    def arrivals_closed(self) -> bool:
        """Whether nothing more will be sent."""
        return self._stopped.is_set()

    async def play(self) -> None:
        """Send everything, then wait for the last answer."""
        start_s = self._now()
        duration_s = self._pace.duration_s
        timer = asyncio.get_running_loop().call_later(duration_s, self._close_arrivals) if duration_s else None
        try:
            await self._arrive(start_s)
            self._arriving = False
            self._check_idle()
            await self._idle.wait()
        finally:
            if timer is not None:
                timer.cancel()
            await self._cancel_all()

    def stop(self) -> None:
        """End now: nothing more is sent, what is under way is dropped and counted as such."""
        self._stopped.set()
        self._arriving = False
        self._idle.set()

    async def _arrive(self, start_s: float) -> None:
        for due_s, call in self._source.arrivals():
            moment_s = start_s + self._pace.wall_s(due_s)
            if not await self._wait_until(moment_s):
                return
            self.tally.behind_s = max(self.tally.behind_s, self._now() - moment_s)
            self._launch(call)

    async def _wait_until(self, moment_s: float) -> bool:
        """Wait for a moment; False when the arrivals end before it."""
        delay_s = moment_s - self._now()
        if delay_s <= 0:
            return not self._stopped.is_set()
        try:
            async with asyncio.timeout(delay_s):
                await self._stopped.wait()
        except TimeoutError:
            return True
        return False

    def _close_arrivals(self) -> None:
        self._stopped.set()
        self._backlog.clear()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._check_idle()

    def _launch(self, call: Call) -> None:
        limit = self._pace.concurrency
        if limit is not None and len(self._tasks) >= limit:
            self.tally.late += 1
            self._backlog.append((self._now(), call))
        else:
            self._start(call)

    def _start(self, call: Call) -> None:
        self.tally.sent += 1
        self.tally.in_flight += 1
        task = asyncio.get_running_loop().create_task(self._run(call))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self.tally.in_flight -= 1
        if self._backlog and not self._stopped.is_set():
            due_s, call = self._backlog.popleft()
            self.tally.late_s += self._now() - due_s
            self._start(call)
        self._check_idle()

    async def _run(self, call: Call) -> None:
        exchange = Exchange(self._now, keep_text=call.keep_text)
        sent_s = self._now()
        ended: Exchange | None = None
        try:
            async with asyncio.timeout(self._pace.timeout_s):
                await self._client.post(self._path, call.body(), exchange, self._headers(call))
        except TimeoutError:
            self.tally.record_error("timeout")
        except ExchangeError as error:
            self.tally.record_error(error.kind, str(error))
        except asyncio.CancelledError:
            self.tally.record_error("dropped")
            raise
        else:
            ended = exchange
            self.tally.record(exchange, sent_s)
        self._continue(call, ended)

    def _continue(self, call: Call, exchange: Exchange | None) -> None:
        after = self._source.follow_up(call, exchange)
        if after is None or self._stopped.is_set():
            return
        timer: asyncio.TimerHandle = asyncio.get_running_loop().call_later(
            after.delay_s / self._pace.speedup, lambda: self._timer_fired(timer, after.call)
        )
        self._timers.add(timer)

    def _timer_fired(self, timer: asyncio.TimerHandle, call: Call) -> None:
        self._timers.discard(timer)
        self._launch(call)

    def _headers(self, call: Call) -> bytes:
        workload = self._pace.workload or call.workload
        lines = b"x-pointsman-workload: %b\r\n" % workload.encode() if workload else b""
        return lines + (b"x-pointsman-session: %b\r\n" % call.session.encode() if call.session else b"")

    def _check_idle(self) -> None:
        arriving = self._arriving and not self._stopped.is_set()
        if not arriving and not self._tasks and not self._timers and not self._backlog:
            self._idle.set()

    async def _cancel_all(self) -> None:
        for timer in self._timers:
            timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
