"""A burst laid over a trace, and what mitigation does to it."""

import pytest

from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.core.terms import HotspotRule
from router.sim.cluster import Cluster
from router.sim.errors import TraceError
from router.sim.outcomes import Outcomes
from router.sim.scenario import Scenario, uniform_fleet
from router.sim.traces.burst import Burst, with_burst
from router.sim.traces.generator import generate
from router.sim.traces.record import Trace

BURST = Burst(
    name="burst",
    start_s=90.0,
    duration_s=60.0,
    requests_per_s=3.0,
    shared_tokens=8192,
    own_tokens=100,
    output_tokens=1500,
)
CALM = generate("thinking", duration_s=180, requests_per_s=2)
SKEWED = with_burst(CALM, BURST, seed=1)


def simulate(trace: Trace, policy: Policy) -> Outcomes:
    return Cluster(Scenario(trace=trace, fleet=uniform_fleet(A100_80G, 6), warmup=0.0), policy).run()


def most_at_one_instance(outcomes: Outcomes) -> int:
    """Requests of the burst at the instance that got most of them."""
    places = [outcomes.instance[i] for i, request in enumerate(SKEWED.requests) if request.workload == "burst"]
    return max(places.count(place) for place in set(places))


def test_its_requests_share_what_it_says_and_nothing_else() -> None:
    added = [request for request in SKEWED.requests if request.workload == "burst"]
    assert len(added) == 180
    assert all(90 <= request.arrival_s <= 150 for request in added)
    shared = 8192 // SKEWED.block_tokens * 8
    assert len({request.blocks[:shared] for request in added}) == 1
    tails = [request.blocks[shared : shared + 8] for request in added if len(request.blocks) > shared]
    assert len(set(tails)) == len(tails)
    below = {request.blocks[:8] for request in CALM.requests}
    assert added[0].blocks[:8] not in below
    assert len(SKEWED.requests) == len(CALM.requests) + 180


def test_the_same_seed_gives_the_same_burst() -> None:
    assert with_burst(CALM, BURST, seed=1) == SKEWED
    assert with_burst(CALM, BURST, seed=2) != SKEWED


def test_a_burst_that_shares_nothing_is_refused() -> None:
    with pytest.raises(TraceError, match="share nothing"):
        with_burst(CALM, Burst(name="b", requests_per_s=1, shared_tokens=8, own_tokens=9, output_tokens=9), seed=1)


def test_mitigation_spreads_the_burst() -> None:
    plain, mitigated = simulate(SKEWED, Policy()), simulate(SKEWED, Policy(hotspot=HotspotRule()))
    assert (plain.mitigations, plain.mitigated_requests) == (0, 0)
    assert mitigated.mitigations >= 1
    assert mitigated.mitigated_requests >= 1
    assert most_at_one_instance(mitigated) < 0.6 * most_at_one_instance(plain)


def test_without_a_burst_nothing_is_mitigated() -> None:
    calm = generate("chatbot", duration_s=150, requests_per_s=8)
    assert simulate(calm, Policy(hotspot=HotspotRule())).mitigations == 0
