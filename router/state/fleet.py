"""The fleet: every instance's counters, the shared prefix index, and the bookings that move them.

One owner, one thread. :meth:`Fleet.decide` chooses by :func:`router.core.decide.decide` and moves no counter of an
instance; :meth:`Fleet.book` is the separate step that follows in the same turn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random

import msgspec
from msgspec.structs import replace

from router.config import InstanceConfig
from router.core.balance import Balance
from router.core.decide import decide
from router.core.decision import Decision
from router.core.hardware import HardwareProfile
from router.core.instance import InstanceState, InstanceView
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.prefix.token_chain import TokenHasher
from router.core.request import Request
from router.core.situation import CALM, Situation
from router.snapshot import HotClassSample
from router.state.balance import Equalizers
from router.state.booking import Booking
from router.state.cold_starts import WARM, refresh_warmth
from router.state.errors import UnknownInstance
from router.state.event_residency import EventResidency
from router.state.hotspot_detector import MOST_REPORTED
from router.state.hotspots import Hotspots
from router.state.instance import Instance
from router.state.known_prefix import KnownPrefix
from router.state.known_prompts import KnownPrompts
from router.state.load_level import LoadLevels
from router.state.report import EngineReport

DEFAULT_KV_CAPACITY_TOKENS = 500_000
"""Assumed until an engine says how much KV it has."""
TICK_S = 1.0
"""How often decisions let time pass: windows of classes move on, cold instances are measured."""


class FleetChange(msgspec.Struct, frozen=True):
    """What applying a configuration did, by instance id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    reset: tuple[str, ...]
    """Instances whose epoch or address changed: their residency and reports were dropped."""


class Fleet:
    """The live instances. ``tokens_per_block`` converts KV capacity into prefix blocks."""

    def __init__(
        self, index: PrefixIndex, tokens_per_block: float = 16.0, token_hasher: TokenHasher | None = None
    ) -> None:
        self.index = index
        self.token_hasher = TokenHasher(0) if token_hasher is None else token_hasher
        """What token blocks are called, in events and in prompts."""
        self.events = EventResidency()
        """What instances that tell their KV events hold."""
        self.known = KnownPrompts(self.token_hasher)
        """Which texts became which tokens."""
        self.views: list[InstanceView] = []
        self._tokens_per_block = tokens_per_block
        self._by_id: dict[str, Instance] = {}
        self._by_slot: dict[int, Instance] = {}
        self._decisions = 0
        self._levels = LoadLevels()
        self._equalizers = Equalizers()
        self.hotspots = Hotspots(index, tokens_per_block)
        self._tick_s = 0.0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Instance]:
        return iter(self._by_id.values())

    def by_slot(self, slot: int) -> Instance:
        """Return the instance in a slot.

        :raises UnknownInstance: when the slot is empty.
        """
        try:
            return self._by_slot[slot]
        except KeyError:
            raise UnknownInstance(f"no instance in slot {slot}") from None

    def by_id(self, instance_id: str) -> Instance:
        """Return an instance by its id.

        :raises UnknownInstance: when there is none.
        """
        try:
            return self._by_id[instance_id]
        except KeyError:
            raise UnknownInstance(f"no instance with id {instance_id}") from None

    def find(self, instance_id: str) -> Instance | None:
        """Return an instance by its id; None when there is none."""
        return self._by_id.get(instance_id)

    def apply(self, configs: Iterable[InstanceConfig], now_s: float) -> FleetChange:
        """Make the fleet equal to ``configs``; counters and residency of instances that stay are kept.

        An instance is cold when it joins a fleet that is at work, becomes *warming*, or loses its cache.
        """
        wanted = {c.id: c for c in configs if c.state is not InstanceState.REMOVED}
        removed = [i for i in self._by_id if i not in wanted]
        for instance_id in removed:
            self._remove(self._by_id[instance_id])
        added: list[str] = []
        reset: list[str] = []
        for config in wanted.values():
            known = self._by_id.get(config.id)
            if known is None:
                self._add(config, now_s)
                added.append(config.id)
            elif self._reconfigure(known, config, now_s):
                reset.append(config.id)
        self._rebuild_views()
        return FleetChange(tuple(added), tuple(removed), tuple(reset))

    def follow(
        self, policies: Sequence[Policy], watched_classes: Iterable[str] = (), reported_classes: int = MOST_REPORTED
    ) -> None:
        """Follow the policies in force, the ids of classes that the control plane watches, and how many to report."""
        rules = [p.hotspot for p in policies if p.hotspot is not None]
        self.hotspots.configure(rules, watched_classes, reported_classes)
        names = frozenset(policy.name for policy in policies)
        self._levels.keep_only(names)
        self._equalizers.keep_only(names)

    def decide(
        self,
        request: Request,
        chain: bytes,
        policy: Policy,
        rng: Random,
        now_s: float,
        known: KnownPrefix | None = None,
    ) -> Decision:
        """Choose an instance for a request that arrives now; when all that are left are ejected, the least bad of them.

        Nothing is booked. The arrival is counted for its prefix class, once: not again for what was tried before.

        :param known: what is known of the prompt's tokens; makes hits exact at instances that tell their events.
        """
        if now_s >= self._tick_s:
            self.tick(now_s)
        matched = self.index.match(chain)
        hot, situation = None, CALM
        if policy.load_adaptive is not None:
            policy = self._levels.in_force(policy, self.views)
        if policy.hotspot is not None and self.hotspots.watching:
            hot = self.hotspots.hot_class(chain, matched, policy.hotspot, now_s)
        if hot is not None or not policy.plain:
            situation = Situation(now_s, hot, self.balance_of(policy))
        if known is not None and self.events:
            hits = self.events.hits(request, chain, known, matched, now_s)
            situation = Situation(situation.now_s, situation.hot, situation.balance, hits)
        decision = decide(request, self.views, matched, policy, rng, situation)
        if decision.chosen_index is None and any(view.ejected for view in self.views):
            decision = decide(request, _none_ejected(self.views), matched, policy, rng, situation)
        if not request.tried and request.pinned is None:
            self.hotspots.note(chain, matched, decision, hot, now_s)
        return decision

    def imagine(
        self,
        request: Request,
        chain: bytes,
        policy: Policy,
        rng: Random,
        now_s: float,
        known: KnownPrefix | None = None,
    ) -> Decision:
        """Decide without any consequence: what another policy would choose at this moment, its first request.

        It knows the time, so that cold starts end for it too; nothing that only a policy in force learns: whether load
        was high before, hot classes, the balance between kinds of hardware.
        """
        matched, situation = self.index.match(chain), CALM
        if not policy.plain:
            situation = Situation(now_s)
        if known is not None and self.events:
            situation = Situation(now_s, hits=self.events.hits(request, chain, known, matched, now_s))
        return decide(request, self.views, matched, policy, rng, situation)

    def balance_of(self, policy: Policy) -> Balance | None:
        """Return what a policy has learnt about the kinds of hardware; None without the term, or nothing yet."""
        learner = self._equalizers.of(policy)
        return None if learner is None else learner.balance

    def load_is_high(self, policy: Policy) -> bool:
        """Say whether load was high at the last decision of a policy that asks."""
        return self._levels.is_high(policy)

    def hot_classes(self) -> tuple[HotClassSample, ...]:
        """Return the most frequent prefix classes of the window, and those on watch."""
        return self.hotspots.samples(self.views, list(self._by_id))

    def forget_prefixes(self) -> None:
        """Drop every expected block and class: prompts are hashed differently from now on."""
        for instance in self:
            self.index.clear(instance.slot)
        self.known.forget()
        self.hotspots.reset()

    def book(self, decision: Decision, chain: bytes, now_s: float) -> Booking:
        """Book a decision: BS, waiting, queued prefill, and the prompt's blocks expected at the chosen instance.

        :raises ValueError: for a decision that chose nothing.
        """
        booking = self.hold(decision, now_s)
        self.expect(booking, chain)
        return booking

    def hold(self, decision: Decision, now_s: float) -> Booking:
        """Book the counters of a decision alone; :meth:`expect` follows in the same turn.

        :raises ValueError: for a decision that chose nothing.
        """
        chosen = decision.chosen
        if chosen is None:
            raise ValueError("a decision without a chosen instance cannot be booked")
        instance = self.by_slot(chosen.view.slot)
        self._decisions += 1
        instance.chosen(self._decisions, chosen.new_tokens, now_s)
        on_ttft = self._ttft_observer(decision, instance)
        tokens = decision.request.prompt_tokens
        return Booking(instance, chosen.new_tokens, tokens, self._publish, now_s=now_s, on_ttft=on_ttft)

    def expect(self, booking: Booking, chain: bytes) -> None:
        """Expect the blocks of a booked prompt at its instance."""
        slot = booking.instance.slot
        self.index.insert(slot, chain)
        if self.events:
            self.events.booked(slot, chain, booking)

    def report(self, instance: Instance, report: EngineReport, now_s: float, own_requests: int) -> None:
        """Take in an engine's report; ``own_requests`` is the most we had booked while it was under way."""
        instance.reported(report, now_s, own_requests)
        capacity = report.kv_capacity_tokens
        if capacity is not None and instance.position is not None:
            self.index.set_capacity(instance.slot, self._capacity_blocks(capacity))
        self._publish(instance)

    def learn_models(self, instance: Instance, names: frozenset[str]) -> None:
        """Take in which models and adapters an engine says that it serves, beyond those that are configured."""
        instance.learn_models(names)
        self._publish(instance)

    def observe_hardware(self, instance: Instance, hardware: HardwareProfile | None) -> None:
        """Take in what an instance's steps cost by what it did; None forgets it."""
        instance.observe(hardware)
        self._publish(instance)

    def eject(self, instance: Instance, ejected: bool) -> None:
        """Take an instance out of rotation after failures, or back."""
        instance.set_ejected(ejected)
        self._publish(instance)

    def forget_residency(self, instance: Instance, now_s: float) -> None:
        """The engine lost its cache: predict no overlap there any more."""
        if instance.position is not None:
            self.index.clear(instance.slot)
            self.events.change(instance.slot, b"", b"", cleared=True)
        instance.forget_reports()
        instance.start_cold(now_s)
        self._publish(instance)

    def follow_events(self, instance: Instance, block_tokens: int) -> None:
        """Believe what an instance tells by KV events from now on; nothing of it is known to be resident yet."""
        if instance.position is not None:
            self.events.follow(instance.slot, block_tokens)
            self.known.block_sizes = self.events.block_sizes

    def estimate(self, instance: Instance) -> None:
        """Estimate an instance's residency from its bookings again."""
        if instance.position is not None:
            self._leave_events(instance)

    def residency_changed(self, instance: Instance, stored: bytes, removed: bytes, cleared: bool, now_s: float) -> None:
        """Apply what an instance told: first it lost everything (or not), then blocks went and came.

        :param stored: packed hashes of :class:`TokenHasher`, parents first.
        """
        if instance.position is None:
            return
        lost = self.events.change(instance.slot, stored, removed, cleared)
        if cleared:
            self.index.clear(instance.slot)
        if lost:
            instance.start_cold(now_s)
            self._publish(instance)

    def tick(self, now_s: float) -> None:
        """Let time pass, at every decision and without any: windows of classes move on, cold instances are measured."""
        if now_s < self._tick_s:
            return
        self._tick_s = now_s + TICK_S
        self.hotspots.tick(self.views, now_s)
        for instance in refresh_warmth(self, self.index, now_s):
            self._publish(instance)

    def _ttft_observer(self, decision: Decision, instance: Instance) -> Callable[[float], None] | None:
        """Return who learns from the first token of a decision that was free to choose; None when nobody does."""
        learner, hardware = self._equalizers.of(decision.policy), instance.config.hardware
        if learner is None or hardware is None or decision.request.pinned is not None:
            return None
        return partial(learner.observe, hardware.name)

    def _add(self, config: InstanceConfig, now_s: float) -> None:
        slot = self.index.add_instance(self._capacity_blocks(config.kv_capacity_tokens or DEFAULT_KV_CAPACITY_TOKENS))
        instance = Instance(slot, config)
        self._by_id[config.id] = instance
        self._by_slot[slot] = instance
        if config.state is InstanceState.WARMING or self._decisions:
            instance.start_cold(now_s)

    def _reconfigure(self, instance: Instance, config: InstanceConfig, now_s: float) -> bool:
        before, after = instance.config.state, config.state
        lost = config.epoch != instance.config.epoch or config.url != instance.config.url
        if config.kv_capacity_tokens not in (None, instance.config.kv_capacity_tokens):
            self.index.set_capacity(instance.slot, self._capacity_blocks(config.kv_capacity_tokens))
        instance.configure(config)
        if lost:
            self.forget_residency(instance, now_s)
        elif after is InstanceState.WARMING and before is not after:
            instance.start_cold(now_s)
        elif before is InstanceState.WARMING and after is InstanceState.READY:
            instance.warm_up(WARM)
        return lost

    def _remove(self, instance: Instance) -> None:
        self.index.remove_instance(instance.slot)
        self._leave_events(instance)
        instance.position = None
        del self._by_id[instance.config.id]
        del self._by_slot[instance.slot]

    def _leave_events(self, instance: Instance) -> None:
        self.events.leave(instance.slot)
        self.known.block_sizes = self.events.block_sizes

    def _rebuild_views(self) -> None:
        self.views = []
        for position, instance in enumerate(self._by_id.values()):
            instance.position = position
            self.views.append(instance.view)

    def _publish(self, instance: Instance) -> None:
        if instance.position is not None:
            self.views[instance.position] = instance.view

    def _capacity_blocks(self, tokens: int) -> int:
        return max(1, min(self.index.capacity, int(tokens / self._tokens_per_block)))


def _none_ejected(views: Sequence[InstanceView]) -> list[InstanceView]:
    return [replace(view, ejected=False) if view.ejected else view for view in views]
