"""Preloading: which prefixes are kept, and that an instance which joins or restarts is filled with them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.core.preload_budget import PreloadBudget
from router.core.terms import ColdStart, HotspotRule
from router.sim.cluster import Cluster
from router.sim.outcomes import Status
from router.sim.preloading import STORE_CAPACITY, PrefixStore, Preloader, common_prefix
from router.sim.scenario import InstanceSpec, Restart, Scenario, uniform_fleet
from router.sim.traces.burst import Burst, with_burst
from router.sim.traces.generator import generate
from tests.router.sim.driving import chain

TRACE = generate("chatbot", duration_s=90, requests_per_s=12)


@given(shared=st.integers(0, 20), one=st.integers(0, 20), other=st.integers(0, 20))
def test_the_common_prefix_is_what_both_begin_with(shared: int, one: int, other: int) -> None:
    common = range(1, shared + 1)
    found = common_prefix(chain(*common, *range(100, 100 + one)), chain(*common, *range(200, 200 + other)))
    assert found == chain(*common)


def test_a_prefix_is_as_long_as_what_different_sessions_share() -> None:
    store = PrefixStore(16)
    store.note(chain(*range(1, 61)), "a")
    assert store.hottest(9) == []
    store.note(chain(*range(1, 71)), "a")
    assert store.hottest(9) == []
    store.note(chain(*range(1, 41), 99), "b")
    assert store.hottest(9) == [chain(*range(1, 41))]
    assert store.tokens(chain(1, 2)) == 32


def test_the_hottest_come_first_and_the_store_is_bounded() -> None:
    store = PrefixStore(16)
    for start in range(0, 100_000, 1000):
        for session in ("a", "b"):
            store.note(chain(*range(start, start + 32)), session)
    for session in ("a", "b", "c"):
        store.note(chain(*range(99_000, 99_032)), session)
    hottest = store.hottest(1000)
    assert len(hottest) <= STORE_CAPACITY
    assert hottest[0] == chain(*range(99_000, 99_032))


class Sent:
    """Remembers what was sent, and refuses the places of ``full``."""

    def __init__(self, full: frozenset[int] = frozenset()) -> None:
        self.all: list[tuple[int, bytes, int]] = []
        self._full = full

    def __call__(self, place: int, chain: bytes, number: int) -> bool:
        if place in self._full:
            return False
        self.all.append((place, chain, number))
        return True


def store_of(*starts: int) -> PrefixStore:
    store = PrefixStore(16)
    for start in starts:
        for session in ("a", "b"):
            store.note(chain(*range(start, start + 40)), session)
    return store


def test_an_instance_is_filled_within_its_budget_a_few_at_a_time() -> None:
    sent = Sent()
    preloader = Preloader(PreloadBudget(tokens=4 * 40 * 16), store_of(0, 1000, 2000, 3000, 4000), sent)
    preloader.fill(7)
    assert [number for *_, number in sent.all] == [1, 2]
    preloader.ended(1)
    preloader.ended(2)
    assert [number for *_, number in sent.all] == [1, 2, 3, 4]
    preloader.ended(3)
    preloader.lost(4)
    assert len(sent.all) == 4
    assert {place for place, *_ in sent.all} == {7}


def test_no_more_prefixes_than_the_budget_says() -> None:
    sent = Sent()
    Preloader(PreloadBudget(most_prefixes=2, at_once=9), store_of(0, 1000, 2000), sent).fill(1)
    assert len(sent.all) == 2


def test_a_hot_prefix_goes_once_to_everybody_who_takes_it_in_their_order() -> None:
    sent = Sent(full=frozenset({5}))
    store = store_of(0)
    preloader = Preloader(PreloadBudget(), store, sent)
    key = chain(*range(32))[-8:]
    preloader.widen(key, [4, 5, 6, 2])
    preloader.widen(key, [6, 2])
    assert [place for place, *_ in sent.all] == [4, 6]
    preloader.ended(1)
    preloader.widen(chain(99), [1])
    assert [place for place, *_ in sent.all] == [4, 6, 2]


def joining(preload: PreloadBudget | None) -> Cluster:
    fleet = (*uniform_fleet(A100_80G, 3), InstanceSpec(name="new", profile=A100_80G, join_s=45.0))
    cluster = Cluster(Scenario(trace=TRACE, fleet=fleet, preload=preload, warmup=0.0), Policy(cold_start=ColdStart()))
    cluster.run()
    return cluster


def test_an_instance_that_joins_is_filled_and_its_requests_hit_more() -> None:
    shares = []
    for preload in (None, PreloadBudget()):
        outcomes = joining(preload).outcomes
        new = [i for i, place in enumerate(outcomes.instance) if place == 3]
        shares.append(sum(outcomes.cached_tokens[i] for i in new) / sum(outcomes.prompt_tokens[i] for i in new))
        assert set(outcomes.status) == {Status.DONE}
    assert shares[1] > shares[0] + 0.05, shares


def test_preloads_are_booked_and_given_back() -> None:
    cluster = joining(PreloadBudget())
    for view in cluster.fleet.views:
        assert (view.bs, view.waiting, view.queued_prefill_tokens, view.active_kv_tokens) == (0, 0, 0, 0)


@pytest.mark.parametrize("preload", [None, PreloadBudget()])
def test_an_instance_that_restarts_is_cold_until_it_is_filled(preload: PreloadBudget | None) -> None:
    scenario = Scenario(trace=TRACE, fleet=uniform_fleet(A100_80G, 3), preload=preload, warmup=0.0)
    restarts = (Restart(instance="a100-80g-1", at_s=45.0),)
    cluster = Cluster(msgspec.structs.replace(scenario, restarts=restarts), Policy(cold_start=ColdStart()))
    outcomes = cluster.run()
    assert set(outcomes.status) <= {Status.DONE, Status.FAILED}
    assert cluster.fleet.views[1].cold_since_s in (None, 46.0)


def test_a_hot_class_is_brought_to_all_before_its_requests_pay_for_it() -> None:
    calm = generate("chatbot", duration_s=150, requests_per_s=4)
    burst = Burst(
        name="hot",
        start_s=75,
        duration_s=60,
        requests_per_s=3,
        shared_tokens=8192,
        own_tokens=50,
        output_tokens=2000,
    )
    scenario = Scenario(trace=with_burst(calm, burst, 1), fleet=uniform_fleet(A100_80G, 4), warmup=0.0)
    policy = Policy(hotspot=HotspotRule())
    alone = Cluster(scenario, policy).run()
    helped = Cluster(msgspec.structs.replace(scenario, preload=PreloadBudget()), policy).run()
    assert alone.preloads == 0
    assert 1 <= helped.preloads <= 3
    assert helped.mitigated_requests < alone.mitigated_requests
