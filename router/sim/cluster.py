"""The discrete-event simulation of a fleet behind a router.

Events are ordered by (time, sequence number), so a run is a function of its scenario, policy and seed: the same ones
give the same bytes. Requests are routed by :func:`router.core.decide.decide` and booked in
:class:`router.state.fleet.Fleet`, exactly as the proxy does it; there is no second scoring code.

What a decision sees is what a router sees: own bookings at once, engine metrics and KV events after a delay, prompts
as block chains. Nothing here reads an engine's hidden state on behalf of a policy.
"""

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Any

from router.config import InstanceConfig
from router.core.decide import decide
from router.core.hotspot.prefix_class import HASH_BYTES
from router.core.hotspot.widening import to_widen
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.request import PRELOAD_WORKLOAD, Request
from router.core.scorers import check_policy
from router.sim.arrivals import followers, opening
from router.sim.cost import to_ps, to_s
from router.sim.errors import RequestTooLarge, SimError
from router.sim.kv_cache import ClearedBlocks, KvEvent, RemovedBlocks, StoredBlocks
from router.sim.node import Node
from router.sim.observer import Observer
from router.sim.outcomes import Outcomes, Status
from router.sim.preloading import PrefixStore, Preloader
from router.sim.scenario import InstanceSpec, Restart, Scenario
from router.sim.step import EngineRequest, StepResult
from router.state.booking import Booking
from router.state.fleet import Fleet
from router.state.instance import Instance

MODEL = "simulated"
_WIDEN_EVERY_PS = to_ps(2.0)
"""How often a control plane looks for hot classes while there are some."""
PROGRESS_EVERY = 500
"""Requests between two calls of a progress callback."""


class Kind(IntEnum):
    """What an event is."""

    ARRIVAL = 0
    STEP_END = 1
    READING = 2
    KV_EVENTS = 3
    JOIN = 4
    RESTART = 5
    RESTART_NOTICED = 6


class Cluster:
    """One run of one policy. ``on_progress`` gets the number of requests that have ended, now and then."""

    def __init__(self, scenario: Scenario, policy: Policy, on_progress: Callable[[int], None] | None = None) -> None:
        scenario.check()
        check_policy(policy)
        self.outcomes = Outcomes(len(scenario.trace.requests))
        self.fleet = Fleet(PrefixIndex(), float(scenario.trace.block_tokens))
        self.fleet.follow([policy])
        self._scenario = scenario
        self._policy = policy
        self._on_progress = on_progress
        self._rng = Random(scenario.seed)
        self._observer = Observer(scenario.observation, self.fleet)
        self._queue: list[tuple[int, int, Kind, Any]] = []
        self._pushed = 0
        self._configs: list[InstanceConfig] = []
        self._nodes: list[tuple[Instance, Node]] = []
        self._place: dict[int, int] = {}
        self._bookings: list[Booking | None] = [None] * len(scenario.trace.requests)
        self._followers = followers(scenario.trace)
        self._open_loop = opening(scenario.trace)
        self._reading_planned = False
        self._store = PrefixStore(scenario.trace.block_tokens)
        budget = scenario.preload
        self._preloader = None if budget is None else Preloader(budget, self._store, self._send_preload)
        self._preloads: dict[int, Booking] = {}
        """By number, below 0: what is being preloaded."""
        self._widen_ps = 0
        self._ended = 0
        self._now_ps = 0

    def run(self) -> Outcomes:
        """Run to the end of the last request and return what happened.

        :raises SimError: when counters do not come back to zero, which is a fault of this program.
        """
        for place, spec in enumerate(self._scenario.fleet):
            if spec.join_s <= 0:
                self._join(place)
            else:
                self._push(to_ps(spec.join_s), Kind.JOIN, place)
        self._fill_caches()
        for restart in self._scenario.restarts:
            self._push(to_ps(restart.at_s), Kind.RESTART, restart)
        self._push_next_arrival()
        handlers: dict[Kind, Callable[[Any], None]] = {
            Kind.ARRIVAL: self._arrive,
            Kind.STEP_END: self._end_step,
            Kind.READING: self._read,
            Kind.KV_EVENTS: self._learn_residency,
            Kind.JOIN: self._join,
            Kind.RESTART: self._restart,
            Kind.RESTART_NOTICED: self._notice_restart,
        }
        queue = self._queue
        while queue:
            self._now_ps, _, kind, payload = heappop(queue)
            handlers[kind](payload)
        self.outcomes.end_time_ps = self._now_ps
        self.outcomes.mitigations = self.fleet.hotspots.mitigations
        self.outcomes.mitigated_requests = self.fleet.hotspots.mitigated_requests
        self._check_drained()
        return self.outcomes

    def _push(self, time_ps: int, kind: Kind, payload: object) -> None:
        self._pushed += 1
        heappush(self._queue, (time_ps, self._pushed, kind, payload))

    # Requests

    def _push_next_arrival(self) -> None:
        index = next(self._open_loop, None)
        if index is not None:
            arrival_s = self._scenario.trace.requests[index].arrival_s / self._scenario.rate_scale
            self._push(max(self._now_ps, to_ps(arrival_s)), Kind.ARRIVAL, index)

    def _arrive(self, index: int) -> None:
        traced = self._scenario.trace.requests[index]
        outcomes = self.outcomes
        outcomes.arrival_ps[index] = self._now_ps
        outcomes.prompt_tokens[index] = traced.prompt_tokens
        outcomes.output_tokens[index] = traced.output_tokens
        if not self._reading_planned:
            self._plan_reading()
        self._route(index, frozenset())
        if traced.think_s is None:
            self._push_next_arrival()

    def _route(self, index: int, tried: frozenset[int]) -> None:
        """Decide, book, and hand over to the engine."""
        self._observer.deliver(self._now_ps)
        traced = self._scenario.trace.requests[index]
        if self._preloader is not None:
            self._store.note(traced.blocks, traced.session)
            if self._now_ps >= self._widen_ps:
                self._widen(self._preloader)
        request = Request(
            id=str(index),
            model=MODEL,
            prompt_tokens=traced.prompt_tokens,
            tokens_per_block=float(self._scenario.trace.block_tokens),
            workload=traced.workload,
            session=traced.session,
            tried=tried,
        )
        decision = self.fleet.decide(request, traced.blocks, self._policy, self._rng, to_s(self._now_ps))
        outcomes = self.outcomes
        outcomes.decisions += 1
        chosen = decision.chosen
        if chosen is None:
            self._end(index, Status.REFUSED)
            return
        place = self._place[chosen.view.slot]
        best_hit = max(candidate.hit_tokens for candidate in decision.candidates)
        outcomes.instance[index] = place
        outcomes.predicted_tokens[index] = chosen.hit_tokens
        outcomes.elsewhere_tokens[index] = best_hit - chosen.hit_tokens
        booking = self.fleet.book(decision, traced.blocks, to_s(self._now_ps))
        self._bookings[index] = booking
        node = self._nodes[place][1]
        work = EngineRequest(request.id, traced.prompt_tokens, traced.output_tokens, traced.blocks)
        try:
            end_ps = node.submit(work, self._now_ps)
        except RequestTooLarge:
            self._end(index, Status.REFUSED)
            return
        if end_ps is not None:
            self._push(end_ps, Kind.STEP_END, (place, node.generation))

    def _end_step(self, payload: tuple[int, int]) -> None:
        place, generation = payload
        node = self._nodes[place][1]
        if node.generation != generation:
            return
        result = node.finish()
        now_ps = self._now_ps
        outcomes = self.outcomes
        preloaded: list[int] = []
        for first in result.first_tokens:
            index = int(first.request_id)
            if index < 0:
                self._preloads[index].first_byte()
                continue
            outcomes.first_ps[index] = now_ps
            outcomes.cached_tokens[index] = first.cached_tokens
            booking = self._bookings[index]
            if booking is not None:
                booking.first_byte(to_s(now_ps))
        for finish in result.finished:
            index = int(finish.request_id)
            if index < 0:
                preloaded.append(index)
                continue
            outcomes.prefilled_tokens[index] = finish.prefilled_tokens
            outcomes.recomputed_tokens[index] = finish.recomputed_tokens
            self._end(index, Status.DONE)
        self._publish_kv_events(place, result)
        end_ps = node.begin(now_ps)
        if end_ps is not None:
            self._push(end_ps, Kind.STEP_END, (place, node.generation))
        for index in preloaded:
            self._end_preload(index)

    def _end(self, index: int, status: Status) -> None:
        """Release the booking of a request, and let the next one of its session follow."""
        outcomes = self.outcomes
        outcomes.status[index] = status
        outcomes.end_ps[index] = self._now_ps
        booking = self._bookings[index]
        if booking is not None:
            booking.end()
            self._bookings[index] = None
        follower = self._followers.get(index)
        if follower is not None:
            think_s = self._scenario.trace.requests[follower].think_s or 0.0
            self._push(self._now_ps + to_ps(think_s), Kind.ARRIVAL, follower)
        self._ended += 1
        if self._on_progress is not None and self._ended % PROGRESS_EVERY == 0:
            self._on_progress(self._ended)

    # What caches begin with

    def _fill_caches(self) -> None:
        """Let instances that are known by name hold what they held when the trace began, and the router expect it."""
        by_name = {instance.config.name: (instance, node) for instance, node in self._nodes}
        for held in self._scenario.trace.held:
            found = by_name.get(held.instance)
            if found is not None:
                instance, node = found
                blocks = node.engine.cache.begin_with(held.blocks)
                self.fleet.index.insert(instance.slot, held.blocks[: blocks * HASH_BYTES])

    # Preloading

    def _fill(self, place: int) -> None:
        if self._preloader is not None:
            self._preloader.fill(place)

    def _widen(self, preloader: Preloader) -> None:
        """Have hot classes brought to everybody, as often as a control plane looks."""
        self._widen_ps = self._now_ps + _WIDEN_EVERY_PS
        fleet = self.fleet
        loads = {view.slot: float(view.bs) for view in fleet.views}
        for key, holders in fleet.hotspots.hot(fleet.views):
            preloader.widen(key, [self._place[slot] for slot in to_widen(loads, holders)])

    def _send_preload(self, place: int, chain: bytes, number: int) -> bool:
        """Send a prefix, through the router but to this one instance, as a request of one output token."""
        instance, node = self._nodes[place]
        matched = self.fleet.index.match(chain)
        if matched[instance.slot] * HASH_BYTES >= len(chain):
            return False
        tokens_per_block = float(self._scenario.trace.block_tokens)
        tokens = self._store.tokens(chain)
        request = Request(str(-number), MODEL, tokens, tokens_per_block, workload=PRELOAD_WORKLOAD)
        decision = decide(request, [instance.view], matched, self._policy, self._rng)
        if decision.chosen is None:
            return False
        self._preloads[-number] = self.fleet.book(decision, chain, to_s(self._now_ps))
        end_ps = node.submit(EngineRequest(request.id, tokens, 1, chain), self._now_ps)
        if end_ps is not None:
            self._push(end_ps, Kind.STEP_END, (place, node.generation))
        self.outcomes.preloads += 1
        return True

    def _end_preload(self, index: int) -> None:
        self._preloads.pop(index).end()
        if self._preloader is not None:
            self._preloader.ended(-index)

    def _lose_preload(self, index: int) -> None:
        self._preloads.pop(index).end()
        if self._preloader is not None:
            self._preloader.lost(-index)

    # What the router learns

    def _plan_reading(self) -> None:
        self._reading_planned = True
        self._push(self._observer.next_reading_ps(self._now_ps), Kind.READING, None)

    def _read(self, _: None) -> None:
        self._observer.read(self._nodes, self._now_ps)
        self._reading_planned = False
        if any(node.engine.busy for _, node in self._nodes):
            self._plan_reading()

    def _publish_kv_events(self, place: int, result: StepResult) -> None:
        delay_s = self._scenario.observation.kv_event_delay_s
        if delay_s is not None and result.kv_events:
            self._push(self._now_ps + to_ps(delay_s), Kind.KV_EVENTS, (place, result.kv_events))

    def _learn_residency(self, payload: tuple[int, list[KvEvent]]) -> None:
        place, events = payload
        slot = self._nodes[place][0].slot
        for event in events:
            match event:
                case StoredBlocks():
                    self.fleet.index.store(slot, event.blocks)
                case RemovedBlocks():
                    self.fleet.index.discard(slot, event.blocks)
                case ClearedBlocks():
                    self.fleet.index.clear(slot)

    # What happens to instances

    def _join(self, place: int) -> None:
        spec = self._scenario.fleet[place]
        self._configs.append(_config(spec, self._scenario.kv_block_tokens))
        self.fleet.apply(self._configs, to_s(self._now_ps))
        instance = self.fleet.by_id(spec.name)
        details = self._scenario.observation.kv_event_delay_s is not None
        node = Node(spec.profile, self._scenario.kv_block_tokens, record_details=details)
        self._place[instance.slot] = len(self._nodes)
        self._nodes.append((instance, node))
        if spec.join_s > 0:
            self._fill(len(self._nodes) - 1)

    def _restart(self, restart: Restart) -> None:
        instance, node = self._nodes[self._node_place(restart.instance)]
        self.outcomes.preemptions += node.engine.preemptions
        node.restart()
        lost = [i for i, booking in enumerate(self._bookings) if booking is not None and booking.instance is instance]
        for number in [n for n, booking in self._preloads.items() if booking.instance is instance]:
            self._lose_preload(number)
        for index in lost:
            if self.outcomes.first_ps[index]:
                self._end(index, Status.FAILED)
            else:
                self._retry(index, instance)
        self._push(self._now_ps + to_ps(restart.noticed_after_s), Kind.RESTART_NOTICED, restart)

    def _retry(self, index: int, failed: Instance) -> None:
        booking = self._bookings[index]
        if booking is not None:
            booking.end()
            self._bookings[index] = None
        self.outcomes.retried += 1
        self._route(index, frozenset({failed.slot}))

    def _notice_restart(self, restart: Restart) -> None:
        instance = self.fleet.by_id(restart.instance)
        self.fleet.forget_residency(instance, to_s(self._now_ps))
        self._observer.forget(instance)
        self._fill(self._node_place(restart.instance))

    def _node_place(self, name: str) -> int:
        return next(place for place, (instance, _) in enumerate(self._nodes) if instance.config.name == name)

    def _check_drained(self) -> None:
        for instance, node in self._nodes:
            node.engine.check_integrity()
            self.outcomes.preemptions += node.engine.preemptions
            held = (instance.own_requests, instance.own_waiting, instance.own_queued_prefill_tokens)
            if any(held) or instance.active_kv_tokens or node.engine.busy:
                raise SimError(f"instance {instance.config.name} still holds {held} after the last request")
        if self._ended != len(self.outcomes):
            raise SimError(f"{len(self.outcomes) - self._ended} requests never ended")


def _config(spec: InstanceSpec, kv_block_tokens: int) -> InstanceConfig:
    return InstanceConfig(
        id=spec.name,
        name=spec.name,
        url=f"http://{spec.name}.invalid",
        hardware=spec.profile,
        kv_block_tokens=kv_block_tokens,
        kv_capacity_tokens=spec.profile.kv_capacity_tokens,
    )
