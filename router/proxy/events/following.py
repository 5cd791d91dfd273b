"""Follows the KV events of every instance that tells them, and decides whose word the fleet believes.

Feeds follow the plane's links. An instance is asked for its sources when it is first reached, when it was out of reach
and is back, and when its configuration changed. It is believed while its connection stands, what it told is complete,
and its reports agree; otherwise it is estimated, and the reason is there to be read.
"""

import asyncio

import msgspec
import structlog

from router.config import KvEventsConfig
from router.kvevents.feed import Feed, FeedStatus
from router.kvevents.residency import Changes
from router.kvevents.source import EventSource
from router.kvevents.subscriber import KvEventReader
from router.ports import Clock
from router.proxy.events.answer_copy import CopyBudget
from router.proxy.events.answers import Answers
from router.proxy.events.learning import Learner
from router.proxy.events.pushed_load import PushedLoad
from router.proxy.events.sample import Standing, sample_of
from router.proxy.events.sources import find_sources
from router.proxy.events.tokenizing import ANSWER_S, TokenizeFailed, check_tokenizer
from router.proxy.events.trust import EventTrust
from router.proxy.fetch import FetchFailed
from router.proxy.link import Link
from router.proxy.plane import Plane
from router.snapshot import EventsSample, Residency

_log = structlog.get_logger(__name__)

RESET_TOLD_S = 5.0
"""A reset that a poll shows so soon after events told one is the same."""
SETTLE_S = 0.25
"""How often it is looked at who is believed."""
NOT_ASKED = "the engine was not asked yet"
RANKS = "{} data-parallel ranks stand behind one address, and which of them a request reaches is not known"


class _Followed(msgspec.Struct, eq=False):
    """One link and its feed."""

    link: Link
    epoch: int
    configured: KvEventsConfig | None
    why_none: str = NOT_ASKED
    """Why there is no feed."""
    source: EventSource | None = None
    feed: Feed | None = None
    why_no_text: str = NOT_ASKED
    """Why texts cannot be learnt here; empty when they can."""
    told: asyncio.Task[None] | None = None
    clears: int = 0
    """How often its events had told by the last poll that its cache was cleared."""
    cleared_s: float = -RESET_TOLD_S
    """When a poll last saw that they had (monotonic)."""
    restarts: int = 0
    """How often its events had shown by the last poll that it restarted."""
    reset_at: int | None = None
    """Messages that were applied when a poll showed a reset of its cache that no event has told yet."""
    standing: Standing = Standing(Residency.ESTIMATED, NOT_ASKED)


class EventFollower:
    """One a worker: :meth:`run` is its life. It is the sink of its feeds."""

    def __init__(self, plane: Plane, clock: Clock) -> None:
        self.load = PushedLoad(plane)
        self.trust = EventTrust()
        self.learner = Learner(plane, self._no_text)
        self._plane = plane
        self._clock = clock
        self._copies = CopyBudget()
        self._answers = Answers(plane, self.trust, self.learner, self._disbelieve)
        self._followed: dict[Link, _Followed] = {}
        self._reader: KvEventReader | None = None

    async def run(self) -> None:
        """Follow for ever."""
        self._plane.events = self
        try:
            while True:
                self.settle()
                await asyncio.sleep(SETTLE_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Follow nobody any more."""
        self._plane.events = self._plane.answers = None
        for followed in list(self._followed.values()):
            self._forget(followed)
        await self.learner.close()
        await self.load.close()
        if self._reader is not None:
            await self._reader.close()
            self._reader = None

    def standing(self, link: Link) -> Standing:
        """Return how an instance's residency is known."""
        followed = self._followed.get(link)
        return Standing(Residency.ESTIMATED, NOT_ASKED) if followed is None else followed.standing

    def status(self, link: Link) -> FeedStatus | None:
        """Return how the feed of an instance is doing; None without one."""
        followed = self._followed.get(link)
        if followed is None or followed.feed is None or self._reader is None:
            return None
        return self._reader.status_of(followed.feed)

    def sample(self, link: Link) -> EventsSample:
        """Return how an instance's residency is known, as snapshots and metrics tell it."""
        instance_id, now_s = link.instance.config.id, self._plane.loop.time()
        doubted = self.trust.doubted(instance_id, now_s)
        return sample_of(
            self.standing(link), self.status(link), self.learner.counts(link), self.trust.report(instance_id), doubted
        )

    # -- what others noticed --

    async def look(self, link: Link) -> None:
        """Ask an instance that was just reached where it publishes, and whether it tokenises."""
        self._follow_links()
        followed = self._followed.get(link)
        if followed is None:
            return
        try:
            sources = await find_sources(lambda path: link.ask(path, limit_s=ANSWER_S), link.instance.config)
        except FetchFailed as error:
            if followed.feed is None:
                followed.why_none = f"it did not tell where it publishes KV events: {error}"
            return
        if self._followed.get(link) is not followed:
            return
        self.load.follow(link, sources.loads)
        followed.why_none = sources.reason
        if len(sources.events) > 1:
            followed.why_none = RANKS.format(len(sources.events))
        self._subscribe(followed, sources.events[0] if len(sources.events) == 1 else None)
        if followed.feed is not None and followed.why_no_text:
            await self._check_tokenizer(followed)
        self.settle()

    def restarted(self, link: Link) -> bool:
        """Take in that a poll showed a restart of the engine; return whether that is news.

        It is none where events have shown it since the poll before: then they are of the engine that is there now.
        """
        followed = self._followed.get(link)
        if followed is None or followed.feed is None:
            return True
        shown = followed.feed.restarts > followed.restarts
        followed.restarts = followed.feed.restarts
        if not shown:
            self._begin_again(followed, "a poll showed that the engine restarted")
        return not shown

    def polled(self, link: Link, *, was_reset: bool) -> bool:
        """Take in whether a poll showed a reset of the engine's cache; return whether that is news.

        An idle engine tells a reset by events only with its next step, which is that of the next request. Until then
        nothing is believed of it; then either its events tell the reset, or there was none (it may refuse while
        requests run).
        """
        followed = self._followed.get(link)
        if followed is None or followed.feed is None:
            return was_reset
        feed, now_s = followed.feed, self._plane.loop.time()
        followed.restarts = feed.restarts
        if feed.told and feed.clears > followed.clears:
            followed.cleared_s = now_s
        followed.clears = feed.clears
        if not was_reset or now_s - followed.cleared_s <= RESET_TOLD_S:
            return False
        followed.reset_at = feed.applied
        self._settle(followed)
        return True

    def residency_changed(self, instance: str, rank: int, changes: Changes) -> None:
        """Take in what changed at an instance (called by its feed)."""
        fleet = self._plane.fleet
        known = fleet.find(instance)
        if known is not None:
            fleet.residency_changed(known, changes.stored, changes.removed, changes.cleared, self._plane.loop.time())

    # -- membership --

    def settle(self) -> None:
        """Bring everything into line with the plane's links, and with how the feeds are doing."""
        self._follow_links()
        for followed in self._followed.values():
            self._settle(followed)
            if followed.feed is not None:
                self._plane.answers = self._answers

    def unasked(self, link: Link) -> bool:
        """Tell whether an instance was not asked yet, as it is configured now."""
        followed = self._followed.get(link)
        return followed is None or followed.why_none == NOT_ASKED

    def _follow_links(self) -> None:
        links = set(self._plane.links.values())
        for followed in [f for link, f in self._followed.items() if link not in links]:
            self._forget(followed)
        for link in links:
            self._follow(link)

    def _follow(self, link: Link) -> None:
        """Keep a record of a link; other configured sources begin it anew, a new epoch what it told."""
        config = link.instance.config
        known = self._followed.get(link)
        if known is not None and known.configured != config.kv_events:
            self._forget(known)
            known = None
        if known is None:
            self._followed[link] = _Followed(link, config.epoch, config.kv_events)
        elif known.epoch != config.epoch:
            known.epoch = config.epoch
            self.trust.forget(config.id)
            self._begin_again(known, "the control plane says that the cache was lost")

    def _forget(self, followed: _Followed) -> None:
        self._subscribe(followed, None)
        link = followed.link
        del self._followed[link]
        self.trust.forget(link.instance.config.id)
        self.load.forget(link.instance.config.id)
        self.learner.forget(link)

    def _subscribe(self, followed: _Followed, source: EventSource | None) -> None:
        """Read this source from now on; the same as before goes on undisturbed."""
        if source == followed.source and (source is None or followed.feed is not None):
            return
        self._unsubscribe(followed)
        followed.source = source
        if source is None:
            return
        config = followed.link.instance.config
        feed = Feed.of(config.id, source, self._plane.fleet.token_hasher, self)
        if self._reader is None:
            self._reader = KvEventReader(self._clock)
        try:
            self._reader.add(feed, source)
        except OSError as error:
            followed.why_none = f"its events cannot be subscribed to: {error}"
            _log.warning("events_unreachable", instance=config.name, reason=str(error))
            return
        followed.feed, followed.restarts = feed, 0
        _log.info("events_followed", instance=config.name, endpoint=source.events, replay=source.replay)

    def _unsubscribe(self, followed: _Followed) -> None:
        feed, followed.feed = followed.feed, None
        self._estimate(followed)
        if feed is not None and self._reader is not None:
            self._reader.remove(feed.instance, feed.rank)

    # -- belief --

    def _settle(self, followed: _Followed) -> None:
        """Believe an instance or not, by how its feed is doing now."""
        reason = self._why_not(followed)
        if reason:
            self._estimate(followed)
        else:
            self._believe(followed)
        text = "" if reason or not followed.why_no_text else f"texts: {followed.why_no_text}"
        reason = reason or text
        standing = Standing(Residency.ESTIMATED if reason else Residency.EVENTS, reason)
        followed.link.copies = self._copies if followed.feed is not None and not followed.why_no_text else None
        if standing != followed.standing:
            followed.standing = standing
            name = followed.link.instance.config.name
            _log.info("residency_mode", instance=name, mode=standing.residency.value, reason=standing.reason)

    def _why_not(self, followed: _Followed) -> str:
        """Return why an instance is not believed now; empty when it is."""
        feed, instance_id = followed.feed, followed.link.instance.config.id
        if feed is None:
            return followed.why_none
        if self.trust.doubted(instance_id, self._plane.loop.time()):
            return "predictions from its events differed from what it reported; they are tried again later"
        if not feed.connected_now:
            return "the connection to its events is down"
        if followed.reset_at == feed.applied:
            return "a poll showed that its cache was reset, which its next events will tell"
        followed.reset_at = None
        if not feed.told and not feed.settled:
            return "its past events are being asked for"
        return ""

    def _believe(self, followed: _Followed) -> None:
        feed, instance = followed.feed, followed.link.instance
        if feed is None:
            return
        fleet, block_tokens = self._plane.fleet, self._block_tokens(followed, feed)
        if feed.told and fleet.events.block_tokens(instance.slot) == block_tokens:
            return
        self.trust.believe(instance.config.id)
        followed.clears = feed.clears  # those of the past that was just replayed are no news
        fleet.follow_events(instance, block_tokens)
        if followed.told is not None:
            followed.told.cancel()
        followed.told = self._plane.loop.create_task(_tell(feed))

    def _begin_again(self, followed: _Followed, reason: str) -> None:
        """What an instance told is void: ask for all of it again, and believe nothing until it is there."""
        self._estimate(followed)
        if followed.feed is not None and self._reader is not None:
            self._reader.begin_again(followed.feed.instance, followed.feed.rank, reason)
        self._settle(followed)

    def _estimate(self, followed: _Followed) -> None:
        """Believe an instance's events no longer."""
        if followed.told is not None:
            followed.told.cancel()
            followed.told = None
        if followed.feed is not None:
            followed.feed.hush()
        instance = followed.link.instance
        if instance.slot in self._plane.fleet.events:
            self._plane.fleet.estimate(instance)

    def _disbelieve(self, link: Link) -> None:
        """Predictions and reports differ persistently: estimate for a while, then have everything told anew."""
        followed = self._followed.get(link)
        if followed is None or followed.feed is None:
            return
        instance_id, now_s = link.instance.config.id, self._plane.loop.time()
        if self.trust.doubted(instance_id, now_s):
            return  # an answer to a request that was placed before
        self.trust.doubt(instance_id, now_s)
        _log.warning("events_disbelieved", instance=link.instance.config.name)
        self._begin_again(followed, "predictions and reports differed")

    # -- texts --

    async def _check_tokenizer(self, followed: _Followed) -> None:
        link = followed.link
        models = link.instance.config.models or tuple(link.instance.learnt_models)
        try:
            await check_tokenizer(link, next(iter(models), ""))
        except TokenizeFailed as error:
            followed.why_no_text = str(error)
        else:
            followed.why_no_text = ""

    def _no_text(self, link: Link, reason: str) -> None:
        """The engine's tokenizer is of no use after all."""
        followed = self._followed.get(link)
        if followed is not None:
            followed.why_no_text = reason
            self._settle(followed)

    def _block_tokens(self, followed: _Followed, feed: Feed) -> int:
        """Return the tokens in a block: as told with the events, else as reported, else as configured."""
        told = feed.residency.block_tokens or (followed.source and followed.source.block_tokens)
        known = followed.link.instance.reconciled
        reported = None if known is None else known.report.kv_block_tokens
        return told or reported or followed.link.instance.config.kv_block_tokens


async def _tell(feed: Feed) -> None:
    """Tell everything, with room for everything else in between."""
    for _ in feed.tell():
        await asyncio.sleep(0)
