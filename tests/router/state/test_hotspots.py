"""The detectors of a fleet: what is counted, watched, mitigated, released and reported."""

from collections.abc import Iterator
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.config import InstanceConfig
from router.core.decision import Decision
from router.core.hotspot.window import BUCKETS, CAPACITY
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.prefix.chain import pack
from router.core.request import Request
from router.core.terms import HotspotRule, Stage1
from router.snapshot import HotClassSample
from router.state.fleet import Fleet

HOT = list(range(1, 33))
KEY = pack([32])
RULE = Policy(hotspot=HotspotRule())


class Traffic:
    """A fleet and the requests that arrive at it; everything it books stays booked unless it is ended."""

    def __init__(self, instances: int = 8, policy: Policy = RULE) -> None:
        self.fleet = Fleet(PrefixIndex())
        self.fleet.apply([InstanceConfig(id=f"id-{i}", name=f"i{i}", url="http://x") for i in range(instances)], 0.0)
        self.fleet.follow([policy])
        self.policy = policy
        self.now_s = 0.0
        self._fresh: Iterator[int] = count(1_000_000, 1000)

    def arrive(self, blocks: list[int], tokens: int = 8192, tried: frozenset[int] = frozenset()) -> Decision:
        request = Request("r", "m", tokens, tried=tried)
        decision = self.fleet.decide(request, pack(blocks), self.policy, Random(0), self.now_s)
        if decision.chosen is not None:
            self.fleet.book(decision, pack(blocks), self.now_s).first_byte()
        return decision

    def hot(self) -> Decision:
        """A long prompt of which the hot prefix is nearly all."""
        return self.arrive([*HOT, next(self._fresh)], 540)

    def cold(self) -> Decision:
        start = next(self._fresh)
        return self.arrive(list(range(start, start + 100)), 1600)

    def warm_up(self, seconds: int = 70) -> None:
        """One cold request a second, until the window is covered."""
        for _ in range(seconds):
            self.now_s += 1
            self.cold()

    def burst(self, requests: int, every_s: float = 0.25) -> list[Decision]:
        decisions = []
        for _ in range(requests):
            self.now_s += every_s
            decisions.append(self.hot())
        return decisions

    def sample(self, key: bytes = KEY) -> HotClassSample | None:
        ids = [instance.config.id for instance in self.fleet]
        return next((s for s in self.fleet.hotspots.samples(self.fleet.views, ids) if s.id == key.hex()), None)


def kept_away(decision: Decision) -> bool:
    return any(reason == "hotspot mitigation for class 2000" for _, reason in decision.rejected)


def test_a_burst_on_one_holder_is_watched_then_kept_away_from_it() -> None:
    traffic = Traffic()
    traffic.warm_up()
    decisions = traffic.burst(60)
    first = next(i for i, decision in enumerate(decisions) if kept_away(decision))
    assert len({decision.chosen.view.slot for decision in decisions[:first]}) == 1
    assert decisions[first].chosen.view.slot != decisions[0].chosen.view.slot
    assert traffic.fleet.hotspots.mitigations == 1
    assert len({decision.chosen.view.slot for decision in decisions}) == 8


def test_a_policy_without_the_rule_only_watches() -> None:
    traffic = Traffic(policy=Policy())
    traffic.warm_up()
    assert not any(decision.rejected for decision in traffic.burst(60))
    sample = traffic.sample()
    assert (sample.watched, sample.mitigated, sample.holders) == (True, False, (traffic_holder(traffic),))


def traffic_holder(traffic: Traffic) -> str:
    matched = traffic.fleet.index.match(pack(HOT))
    return next(i.config.id for i in traffic.fleet if matched[i.slot] == 32)


def test_before_a_whole_window_was_counted_nothing_is_watched() -> None:
    traffic = Traffic()
    traffic.warm_up(30)
    assert not any(map(kept_away, traffic.burst(60)))


def test_a_class_of_few_requests_is_not_watched() -> None:
    traffic = Traffic()
    traffic.warm_up()
    assert not any(map(kept_away, traffic.burst(25, every_s=1.0)))


def test_shares_that_are_fair_are_not_watched() -> None:
    """One in eight requests on one of eight instances is its share: not more."""
    traffic = Traffic()
    for number in range(400):
        traffic.now_s += 0.5
        if number % 9 == 0:
            traffic.hot()
        else:
            traffic.cold()
    assert traffic.fleet.hotspots.mitigations == 0
    assert traffic.sample().watched is False


def test_it_is_released_after_a_window_without_the_burst() -> None:
    traffic = Traffic()
    traffic.warm_up()
    traffic.burst(60)
    assert traffic.sample().watched
    traffic.warm_up(150)
    assert traffic.sample() is None
    assert not kept_away(traffic.hot())


def test_time_passes_without_requests_as_well() -> None:
    traffic = Traffic()
    traffic.warm_up()
    traffic.burst(60)
    for _ in range(140):
        traffic.now_s += 1
        traffic.fleet.tick(traffic.now_s)
    assert traffic.fleet.hotspots.arrivals == 0
    assert not traffic.fleet.hotspots.watching


def test_the_report_adds_up() -> None:
    traffic = Traffic()
    traffic.warm_up()
    decisions = traffic.burst(60)
    sample = traffic.sample()
    assert (sample.requests, sample.error, sample.model, sample.prefix_tokens, sample.ready) == (60 - 1, 0, "m", 512, 8)
    assert sample.mitigated_requests == sum(map(kept_away, decisions))
    assert sample.hits == 60 - 1 - sample.mitigated_requests
    assert sample.share == pytest.approx(59 / traffic.fleet.hotspots.arrivals)
    assert sample.mitigated
    assert len(sample.holders) == 8


def test_a_retry_is_no_arrival() -> None:
    traffic = Traffic()
    traffic.warm_up()
    before = traffic.fleet.hotspots.arrivals
    traffic.arrive(HOT, tried=frozenset({0}))
    assert traffic.fleet.hotspots.arrivals == before


def test_the_control_plane_can_put_a_class_on_watch_and_take_it_off() -> None:
    policy = Policy(hotspot=HotspotRule(stage1=Stage1.CONTROL_PLANE))
    traffic = Traffic(policy=policy)
    traffic.warm_up()
    assert not any(map(kept_away, traffic.burst(60)))
    traffic.fleet.follow([policy], [KEY.hex()])
    assert any(map(kept_away, traffic.burst(10)))
    traffic.fleet.follow([policy], [])
    traffic.warm_up(150)
    assert not any(map(kept_away, traffic.burst(3)))


def test_a_mitigation_lasts_no_longer_than_its_longest_duration() -> None:
    traffic = Traffic(policy=Policy(hotspot=HotspotRule(max_duration_s=5.0)))
    traffic.warm_up()
    decisions = traffic.burst(60)
    assert any(map(kept_away, decisions[:50]))
    traffic.now_s += 5
    traffic.fleet.index.clear(0)
    assert not kept_away(traffic.hot())


def test_policies_with_other_windows_have_detectors_of_their_own() -> None:
    short = Policy(name="short", hotspot=HotspotRule(class_tokens=16, window_s=30.0))
    traffic = Traffic(policy=short)
    traffic.fleet.follow([RULE, short])
    traffic.warm_up()
    assert any(
        reason == "hotspot mitigation for class 0100"
        for decision in traffic.burst(60)
        for _, reason in decision.rejected
    )


def test_forgetting_prefixes_forgets_classes() -> None:
    traffic = Traffic()
    traffic.warm_up()
    traffic.burst(60)
    traffic.fleet.forget_prefixes()
    assert traffic.fleet.index.entries == 0
    assert traffic.sample() is None
    assert traffic.fleet.hotspots.arrivals == 0


def test_memory_is_bounded_under_classes_without_end() -> None:
    traffic = Traffic(instances=2)
    for _ in range(3000):
        traffic.now_s += 0.05
        start = next(traffic._fresh)
        for _ in range(2):
            traffic.arrive(list(range(start, start + 33)), 528)
    ids = [instance.config.id for instance in traffic.fleet]
    window = traffic.fleet.hotspots._all[0].window
    assert len(window.classes()) <= (BUCKETS + 1) * CAPACITY
    assert len(traffic.fleet.hotspots.samples(traffic.fleet.views, ids)) <= 5


@settings(max_examples=30, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["hot", "cold", "second"]), min_size=50, max_size=150), instances=st.integers(1, 5)
)
def test_no_request_is_ever_without_an_instance(kinds: list[str], instances: int) -> None:
    traffic = Traffic(instances, Policy(hotspot=HotspotRule(factor=0.0)))
    traffic.warm_up(61)
    for kind in kinds:
        traffic.now_s += 0.2
        decision = {"hot": traffic.hot, "cold": traffic.cold, "second": lambda: traffic.arrive([7, 8, 9, 10], 70)}[
            kind
        ]()
        assert decision.chosen is not None
        assert len(decision.candidates) + len(decision.rejected) == instances
