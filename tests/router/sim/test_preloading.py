"""Preloading: which prefixes are kept, and that an instance which joins or restarts is filled with them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.core.terms import ColdStart
from router.sim.cluster import Cluster
from router.sim.outcomes import Status
from router.sim.preloading import STORE_CAPACITY, Filling, PrefixStore, Preload, common_prefix
from router.sim.scenario import InstanceSpec, Restart, Scenario, uniform_fleet
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


def test_only_what_is_missing_is_sent_and_only_within_the_budget() -> None:
    store = PrefixStore(16)
    for start in (0, 1000, 2000):
        for session in ("a", "b"):
            store.note(chain(*range(start, start + 40)), session)
    held = chain(*range(1000, 1040))
    filling = Filling(Preload(budget_tokens=40 * 16), store)
    assert filling.next(lambda blocks: 40 if blocks == held else 0) in (
        chain(*range(40)),
        chain(*range(2000, 2040)),
    )
    assert filling.next(lambda blocks: 0) is None


def joining(preload: Preload | None) -> Cluster:
    fleet = (*uniform_fleet(A100_80G, 3), InstanceSpec(name="new", profile=A100_80G, join_s=45.0))
    cluster = Cluster(Scenario(trace=TRACE, fleet=fleet, preload=preload, warmup=0.0), Policy(cold_start=ColdStart()))
    cluster.run()
    return cluster


def test_an_instance_that_joins_is_filled_and_its_requests_hit_more() -> None:
    shares = []
    for preload in (None, Preload()):
        outcomes = joining(preload).outcomes
        new = [i for i, place in enumerate(outcomes.instance) if place == 3]
        shares.append(sum(outcomes.cached_tokens[i] for i in new) / sum(outcomes.prompt_tokens[i] for i in new))
        assert set(outcomes.status) == {Status.DONE}
    assert shares[1] > shares[0] + 0.05


def test_preloads_are_booked_and_given_back() -> None:
    cluster = joining(Preload())
    for view in cluster.fleet.views:
        assert (view.bs, view.waiting, view.queued_prefill_tokens, view.active_kv_tokens) == (0, 0, 0, 0)


@pytest.mark.parametrize("preload", [None, Preload()])
def test_an_instance_that_restarts_is_cold_until_it_is_filled(preload: Preload | None) -> None:
    scenario = Scenario(trace=TRACE, fleet=uniform_fleet(A100_80G, 3), preload=preload, warmup=0.0)
    restarts = (Restart(instance="a100-80g-1", at_s=45.0),)
    cluster = Cluster(msgspec.structs.replace(scenario, restarts=restarts), Policy(cold_start=ColdStart()))
    outcomes = cluster.run()
    assert set(outcomes.status) <= {Status.DONE, Status.FAILED}
    assert cluster.fleet.views[1].cold_since_s in (None, 46.0)
