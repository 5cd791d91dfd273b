"""Asks every engine for its load every second or so, and for its models now and then."""

import asyncio
from random import Random

import structlog

from router.core.instance import InstanceState
from router.proxy.engine_metrics import EngineReading, read_metrics, restarted
from router.proxy.fetch import Fetched, FetchFailed
from router.proxy.link import Link
from router.proxy.model_cards import parse_cards
from router.proxy.plane import Plane

_log = structlog.get_logger(__name__)
ANSWER_S = 2.0
MODELS_EVERY = 10
"""Polls between two looks at the models."""
_SILENT = frozenset({InstanceState.MAINTENANCE, InstanceState.DRAINED, InstanceState.REMOVED})


class LoadPoller:
    """One task an instance; tasks follow the plane's links, so none outlives its instance."""

    def __init__(self, plane: Plane, rng: Random, every_s: float = 1.0) -> None:
        self._plane = plane
        self._rng = rng
        self._every_s = every_s
        self._tasks: dict[Link, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Poll for ever; ends with all its tasks."""
        try:
            while True:
                self._follow_links()
                await asyncio.sleep(self._every_s / 4)
        finally:
            for task in self._tasks.values():
                task.cancel()

    def _follow_links(self) -> None:
        links = set(self._plane.links.values())
        for link in [link for link in self._tasks if link not in links]:
            self._tasks.pop(link).cancel()
        for link in links - self._tasks.keys():
            self._tasks[link] = asyncio.create_task(_InstancePoll(self._plane, link).run(self._every_s, self._rng))


class _InstancePoll:
    """The polling of one instance."""

    def __init__(self, plane: Plane, link: Link) -> None:
        self._plane = plane
        self._link = link
        self._last: EngineReading | None = None
        self._failing = False
        self._polls = 0
        self._reached = 0
        """Polls in a row that the engine answered, with metrics or without."""

    async def run(self, every_s: float, rng: Random) -> None:
        while True:
            if self._link.instance.config.state not in _SILENT:
                await self._look()
            await asyncio.sleep(every_s * rng.uniform(0.9, 1.1))

    async def _look(self) -> None:
        """Poll once; a fault of this program costs this one poll."""
        try:
            await self._poll()
            await self._look_for_events()
        except Exception:
            _log.exception("poll_failed", instance=self._link.instance.config.name)

    async def _poll(self) -> None:
        link = self._link
        name = link.instance.config.name
        own_before = link.instance.own_requests
        reached, self._reached = self._reached, 0
        try:
            answer = await self._ask(b"/metrics")
            self._reached = reached + 1
            if answer.status != 200:
                raise FetchFailed(f"status {answer.status}")
            self._take(read_metrics(answer.body, link.instance.config.rank), own_before, link.instance.own_requests)
            if self._polls % MODELS_EVERY == 0:
                await self._poll_models()
            self._polls += 1
        except FetchFailed as error:
            if not self._failing:
                _log.warning("metrics_unreachable", instance=name, reason=str(error))
            self._failing = True
            self._polls = 0
        else:
            self._failing = False

    def _take(self, reading: EngineReading, own_before: int, own_after: int) -> None:
        """Take in a reading; own requests are those that were booked before and after it was asked for."""
        link, instance, now_s = self._link, self._link.instance, self._plane.loop.time()
        events = self._plane.events
        before, self._last = self._last, reading
        if before is not None and restarted(before, reading):
            self._restarted(now_s)
        else:
            self._follow_resets(before is not None and reading.cache_resets > before.cache_resets, now_s)
        if reading.missing != link.missing:
            link.missing = reading.missing
            if reading.missing:
                _log.warning("metrics_missing", instance=instance.config.name, missing=reading.missing)
        self._follow_drift(reading, min(own_before, own_after))
        report, own_requests = reading.report, max(own_before, own_after)
        if events is not None:
            report, own_requests = events.load.complete(link, report, own_requests)
        self._plane.fleet.report(instance, report, now_s, own_requests)

    def _restarted(self, now_s: float) -> None:
        """Another process stands behind the name: nothing that was known of the old one holds."""
        link, instance, plane = self._link, self._link.instance, self._plane
        _log.warning("engine_restarted", instance=instance.config.name)
        if plane.events is None or plane.events.restarted(link):
            plane.fleet.forget_residency(instance, now_s)
        self._reached = 1
        link.breaker.reset()
        link.drift.forget()
        link.pace.forget()
        plane.fleet.observe_hardware(instance, None)

    def _follow_resets(self, was_reset: bool, now_s: float) -> None:
        """Somebody had the engine forget its cache: predict nothing there, unless its events have told it already."""
        events = self._plane.events
        if was_reset if events is None else events.polled(self._link, was_reset=was_reset):
            _log.info("cache_reset", instance=self._link.instance.config.name)
            self._plane.fleet.forget_residency(self._link.instance, now_s)

    async def _look_for_events(self) -> None:
        events = self._plane.events
        if events is None or not self._reached:
            return
        if self._reached % MODELS_EVERY == 1 or events.unasked(self._link):
            await events.look(self._link)

    def _follow_drift(self, reading: EngineReading, own_requests: int) -> None:
        report, drift = reading.report, self._link.drift
        known = report.running is not None and report.waiting is not None
        before = drift.requests
        drift.reported(own_requests, (report.running or 0) + (report.waiting or 0) if known else None)
        if drift.requests and not before:
            _log.warning("drift", instance=self._link.instance.config.name, requests=drift.requests)

    async def _ask(self, path: bytes) -> Fetched:
        return await self._link.ask(path, limit_s=ANSWER_S)

    async def _poll_models(self) -> None:
        answer = await self._ask(b"/v1/models")
        if answer.status != 200:
            return
        try:
            cards = parse_cards(answer.body)
        except ValueError as error:
            _log.warning("models_unreadable", instance=self._link.instance.config.name, reason=str(error))
        else:
            self._plane.learn_models(self._link.instance, cards)
