"""The data plane's shared state: one object that every exchange reads, changed only between two turns of the loop."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from router.config import ConfigDocument
from router.core.decision import Decision
from router.core.policy import Policy
from router.core.prefix import PrefixIndex, PromptHasher
from router.core.prefix.token_chain import TokenHasher
from router.core.request import Request
from router.proxy.address import parse_address
from router.proxy.admission import Admission
from router.proxy.batch import Batch
from router.proxy.breaker import Breaker, BreakerRule
from router.proxy.deadlines import Deadlines
from router.proxy.intake import Intake, IntakeDesk
from router.proxy.limits import Limits
from router.proxy.link import Link
from router.proxy.model_cards import Card, ModelCards
from router.proxy.pool import Pool
from router.proxy.preload.prefix_texts import ClassPrefix, PrefixTexts
from router.proxy.quotas import OutputEstimate, Quotas
from router.proxy.recent_decisions import RecentDecisions
from router.proxy.retry_budget import RetryBudget
from router.proxy.sessions import Sessions
from router.proxy.spans import Tracer
from router.proxy.stats import Stats
from router.proxy.suspects import Suspects
from router.proxy.table import RoutingTable, table_of
from router.state.calibration import BytesPerToken
from router.state.fleet import Fleet
from router.state.hotspot_detector import MOST_REPORTED
from router.state.instance import Instance

if TYPE_CHECKING:
    from router.proxy.events.answers import Answers
    from router.proxy.events.following import EventFollower
    from router.proxy.recorder import Recorder
    from router.proxy.rolling_recorder import RollingRecorder

DEFAULT_PREFIX_BLOCKS = 1_000_000
_FOLLOW_TEXTS_EVERY_S = 2.0
_REFIT_EVERY_S = 1.0
"""How often an instance's pace is fitted, one of them at a time."""


class Plane:
    """Fleet, connections, policies and counts of one worker. One owner, one thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        rng: Random,
        limits: Limits | None = None,
        prefix_blocks: int = DEFAULT_PREFIX_BLOCKS,
        breaker_rule: BreakerRule | None = None,
    ) -> None:
        self.loop = loop
        self.rng = rng
        self.limits = Limits() if limits is None else limits
        self.fleet = Fleet(PrefixIndex(max_blocks=prefix_blocks), token_hasher=TokenHasher(rng.getrandbits(64)))
        self.calibration = BytesPerToken()
        self.sessions = Sessions()
        hasher = PromptHasher(rng.getrandbits(128))
        self.desk = IntakeDesk(hasher, self.calibration, rng, self.sessions, self.fleet.known)
        self.stats = Stats()
        self.deadlines = Deadlines()
        self.budget = RetryBudget()
        self.suspects = Suspects(rng.getrandbits(64))
        self.quotas = Quotas()
        self.admission = Admission(lambda: self.fleet.views)
        self.batch = Batch(loop.call_later)
        self.outputs = OutputEstimate()
        self.texts = PrefixTexts()
        self.table: RoutingTable | None = None
        self.links: dict[int, Link] = {}
        """By slot."""
        self.in_flight = 0
        self.stopping = False
        self.open_clients = 0
        self.clients_refused = 0
        """Clients that were turned away because there were connections enough, none of them idle."""
        self.clients_that_made_way = 0
        """Idle clients that were closed for others."""
        self.held_bytes = 0
        """Bytes of request bodies that are held."""
        self.scrape: bytes | None = None
        """What ``/metrics`` says in this turn of the loop, if it was asked."""
        self.config_error: str | None = None
        """Why the newest document was refused, while an older one is in force."""
        self.cards = ModelCards()
        self.recent = RecentDecisions()
        self.recorder: Recorder | RollingRecorder | None = None
        self.tracer: Tracer | None = None
        """Where requests that have ended are written, if they are."""
        self.events: EventFollower | None = None
        """Who follows the KV events of instances, if anybody does."""
        self.answers: Answers | None = None
        """Told of every request that ended; None while no instance's events are followed."""
        self._prefix_seed: str | None = None
        self._follow_texts_s = 0.0
        self._refit_s = 0.0
        self._breaker_rule = BreakerRule() if breaker_rule is None else breaker_rule

    @property
    def ready(self) -> bool:
        """Whether a configuration is in force and requests are taken."""
        return self.table is not None and not self.stopping

    def apply(self, document: ConfigDocument) -> None:
        """Put a valid document into force, whole, between two requests."""
        self.fleet.apply(document.instances, self.loop.time())
        self._follow_seed(document.prefix_seed)
        kept = 0 if document.preload is None else document.preload.max_classes
        self.fleet.follow(document.policies, document.watched_classes, max(MOST_REPORTED, kept))
        self.table = table_of(document)
        self.texts.configure(document)
        self.batch.window_s = document.admission.batch_window_ms / 1000
        self.admission.configure(document)
        self.quotas.configure(document.tenants, self.loop.time())
        self._sync_links()
        ids = {i.config.id for i in self.fleet}
        self.stats.keep_only(ids, set(self.table.policies), {tenant.name for tenant in document.tenants})
        self.cards.keep_only(ids)
        self.desk.adapters = self.cards.adapters

    def decide(self, request: Request, intake: Intake, policy: Policy) -> Decision:
        """Choose an instance for an intake; ``request`` is its request, with what was tried already."""
        return self.fleet.decide(request, intake.chain, policy, self.rng, self.loop.time(), intake.known)

    def remember(self, decision: Decision) -> None:
        """Keep a decision that is obeyed, in the turn in which it was made, so that it can be explained."""
        self.recent.add(decision, self.loop.time(), self.fleet.hotspots.watching)

    def learn_models(self, instance: Instance, cards: tuple[Card, ...]) -> None:
        """Take in what an engine says that it serves."""
        self.cards.learn(instance.config.id, cards)
        self.desk.adapters = self.cards.adapters
        self.fleet.learn_models(instance, frozenset(card["id"] for card in cards))

    def imagine(self, intake: Intake, policy: Policy) -> Decision:
        """Decide without any consequence: what another policy would have chosen at this moment."""
        return self.fleet.imagine(intake.request, intake.chain, policy, self.rng, self.loop.time(), intake.known)

    def _follow_seed(self, seed: str | None) -> None:
        """Hash prompts with the secret that all workers share; what is expected where was told by other hashes."""
        if seed is not None and seed != self._prefix_seed:
            self._prefix_seed = seed
            self.desk.use(PromptHasher(int(seed, 16)))
            self.fleet.forget_prefixes()
            self.texts.forget()

    def forget_scrape(self) -> None:
        """Another turn of the loop: count anew when asked."""
        self.scrape = None

    def sweep(self, now_s: float) -> None:
        """Let time pass: deadlines, back-offs, idle connections."""
        self.deadlines.sweep(now_s)
        self.fleet.tick(now_s)
        self.budget.tick(now_s)
        self.suspects.tick(now_s)
        if self.texts.rule is not None and now_s >= self._follow_texts_s:
            self._follow_texts_s = now_s + _FOLLOW_TEXTS_EVERY_S
            self.texts.follow(ClassPrefix(*leading) for leading in self.fleet.hotspots.leading(self.fleet.views))
        self.admission.pump()
        if now_s >= self._refit_s:
            self._refit_s = now_s + _REFIT_EVERY_S
            self._refit_one()
        for link in self.links.values():
            link.breaker.tick(now_s)
            link.pool.sweep(now_s)

    def _refit_one(self) -> None:
        """Fit the pace of the instance that has waited longest for it; one at a time, for it takes a millisecond."""
        due = min((link for link in self.links.values() if link.pace.is_due), key=_fitted_s, default=None)
        if due is not None:
            due.pace.refit(self.loop.time())
            self.fleet.observe_hardware(due.instance, due.pace.observed)

    def close(self) -> None:
        """Close every idle connection to an engine."""
        for link in self.links.values():
            link.pool.close()
            link.inquest.close()

    def _sync_links(self) -> None:
        known, self.links = self.links, {}
        for instance in self.fleet:
            link = known.get(instance.slot)
            if link is not None and link.instance is instance and _reaches(link, instance):
                known.pop(instance.slot)
                link.configured()
            else:
                link = self._link(instance)
            self.links[instance.slot] = link
        for link in known.values():
            link.close()

    def _link(self, instance: Instance) -> Link:
        if instance.ejected:
            self.fleet.eject(instance, False)
        self.fleet.observe_hardware(instance, None)

        def eject(ejected: bool) -> None:
            self.fleet.eject(instance, ejected)

        pool = Pool(parse_address(instance.config.url), self.limits, self.loop)
        return Link(instance, pool, Breaker(self._breaker_rule, eject))


def _fitted_s(link: Link) -> float:
    return link.pace.fitted_s


def _reaches(link: Link, instance: Instance) -> bool:
    return link.pool.address == parse_address(instance.config.url)
