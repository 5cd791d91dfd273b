"""What a worker remembers of its decisions: the newest, within its limits, and nothing that a collector has to see."""

import gc
from random import Random

import pytest

from router.core.decide import decide
from router.core.decision import Decision
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.proxy.recent_decisions import RecentDecisions, size_bytes
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import chat_body, proxying


def decision(request_id: str, tokens: int = 100, instances: int = 4) -> Decision:
    views = [InstanceView(slot=slot, name=f"gpu-{slot}", bs=slot) for slot in range(instances)]
    return decide(Request(request_id, "model", tokens), views, [0] * instances, Policy(), Random(1))


def test_the_newest_decision_about_a_request_is_found() -> None:
    recent = RecentDecisions()
    for at_s, (name, tokens) in enumerate([("a", 10), ("b", 20), ("a", 30)]):
        recent.add(decision(name, tokens), float(at_s))
    found = recent.find("a")
    assert found is not None
    assert (found.at_s, found.decision.request.prompt_tokens) == (2.0, 30)
    assert found.decision.rows() == decision("a", 30).rows()
    assert recent.find("c") is None


def test_the_oldest_go_when_there_are_enough() -> None:
    recent = RecentDecisions(most=3)
    for number in range(10):
        recent.add(decision(str(number)), float(number))
    assert len(recent) == 3
    assert [recent.find(str(number)) is not None for number in range(10)] == [False] * 7 + [True] * 3
    assert recent.estimated_bytes == 3 * size_bytes(decision("x"))


def test_of_a_large_fleet_fewer_are_kept() -> None:
    room = 10 * size_bytes(decision("x", instances=4))
    small, large = RecentDecisions(most_bytes=room), RecentDecisions(most_bytes=room)
    for number in range(50):
        small.add(decision(str(number), instances=4), 0.0)
        large.add(decision(str(number), instances=64), 0.0)
    assert len(small) == 10
    assert 0 < len(large) < 10
    assert large.estimated_bytes <= room


def test_the_garbage_collector_has_nothing_to_follow_in_it() -> None:
    recent = RecentDecisions()
    for number in range(20):
        recent.add(decision(str(number)), 0.0)
    gc.collect()
    found = recent.find("7")
    assert found is not None
    for kept in (found, found.decision, found.decision.candidates, found.decision.scores):
        assert not gc.is_tracked(kept)


@pytest.mark.parametrize("request_id", ["mine", "a/b:c=1"])
async def test_a_worker_remembers_what_it_decided(request_id: str) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        answer = await client.post(chat_body(), x_request_id=request_id)
        assert answer.fields["x-pointsman-request-id"] == request_id
        found = proxy.plane.recent.find(request_id)
        assert found is not None
        assert f"{found.decision.score:.6g}" == answer.fields["x-pointsman-score"]
