"""The optional terms of a policy, as clients and the control plane see them."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from router.config import ConfigError, dump_config, parse_config
from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.core.terms import AboveCap, EqualizeTtft, HotspotRule, LoadAdaptive
from router.proxy.exposition import expose
from router.proxy.snapshots import SnapshotTimes, WorkerIdentity, build_snapshot
from router.snapshot import Snapshot, dump_snapshot, parse_snapshot
from tests.fakes.engine import (
    LAST_CHUNK,
    STREAM_HEAD,
    FakeEngine,
    Peer,
    Received,
    Script,
    answers_json,
    chunk,
    streams,
)
from tests.router.proxy.harness import Proxy, chat_body, document, proxying, request_bytes

SYSTEM = "You are a helpful assistant. " * 200
SEED = "0123456789abcdef" * 2
EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
OVERLOADED = b'data: {"error": {"message": "busy", "type": "x", "param": null, "code": 503}}\n\n'
DONE = b"data: [DONE]\n\n"


def snapshot_of(proxy: Proxy) -> Snapshot:
    now_s = proxy.plane.loop.time()
    times = SnapshotTimes(0.0, now_s, 1.0)
    taken = build_snapshot(proxy.plane, proxy.plane.stats.take(), WorkerIdentity("w", 0.0), 1, times)
    return parse_snapshot(dump_snapshot(taken))


async def test_what_every_instance_is_too_busy_for_is_shed_with_429() -> None:
    policy = Policy(p_token_cap=1, above_cap=AboveCap.SHED)
    async with FakeEngine() as engine, proxying(engine, policies=(policy,)) as proxy:
        answer = await proxy.chat("hello " * 50)
        assert answer.status == 429
        assert answer.fields["retry-after"] == "1"
        assert b"is above the cap 1" in answer.body
        assert not engine.requests


async def test_or_goes_to_the_least_bad_one_and_is_counted() -> None:
    async with FakeEngine() as engine, proxying(engine, policies=(Policy(p_token_cap=1),)) as proxy:
        assert (await proxy.chat("hello " * 50)).status == 200
        (workload,) = snapshot_of(proxy).workloads
        assert workload.above_cap == 1


async def test_classes_of_requests_are_reported() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        for number in range(5):
            await proxy.chat(SYSTEM + f"question {number}")
        taken = snapshot_of(proxy)
    (found,) = taken.hot_classes
    assert taken.hot_arrivals == 5
    assert (found.requests, found.hits, found.ready, found.watched, found.prefix_tokens) == (4, 4, 2, False, 512)
    assert set(found.holders) <= {f"id-{one.port}", f"id-{two.port}"}


async def test_workers_with_the_same_seed_call_a_class_by_the_same_id() -> None:
    ids = []
    for _ in range(2):
        async with FakeEngine() as engine, proxying(engine) as proxy:
            await proxy.chat(SYSTEM + "one")
            proxy.plane.apply(replace(document([engine], 2), prefix_seed=SEED))
            assert proxy.plane.fleet.index.entries == 0
            for text in ("two", "three"):
                await proxy.chat(SYSTEM + text)
            proxy.plane.apply(replace(document([engine], 3), prefix_seed=SEED))
            assert proxy.plane.fleet.index.entries > 0
            ids.append(snapshot_of(proxy).hot_classes[0].id)
    assert ids[0] == ids[1]


async def test_a_class_that_the_control_plane_watches_is_mitigated_and_said_so() -> None:
    policy = Policy(hotspot=HotspotRule())
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two, policies=(policy,)) as proxy:
        for number in range(2):
            await proxy.chat(SYSTEM + f"question {number}")
        (found,) = snapshot_of(proxy).hot_classes
        watching = replace(document([one, two], 2, policies=(policy,)), watched_classes=(found.id,))
        proxy.plane.apply(watching)
        for number in range(4):
            await proxy.chat(SYSTEM + f"again {number}")
        last = snapshot_of(proxy).last_decision
    reasons = [candidate.filtered for candidate in last.candidates if candidate.filtered]
    assert reasons == [f"hotspot mitigation for class {found.id[:4]}"]


def test_a_document_with_a_bad_class_or_seed_is_refused() -> None:
    bad = replace(document([], 1), watched_classes=("3F2A",), prefix_seed="short")
    with pytest.raises(ConfigError) as refused:
        parse_config(dump_config(bad))
    assert refused.value.reasons == ["watched class '3F2A' is not 16 hex digits", "prefix_seed is not 32 hex digits"]


LEARNING = Policy(normalize_hardware=True, equalize_ttft=EqualizeTtft(samples=1))


async def test_hardware_is_learnt_about_from_the_first_tokens_of_streams() -> None:
    seen = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await asyncio.sleep(0.002)  # the loop's clock counts milliseconds: a time of 0 would say nothing
        peer.send(STREAM_HEAD + chunk(EVENT))
        await seen.wait()
        peer.send(chunk(DONE) + LAST_CHUNK)

    async with (
        FakeEngine(script) as engine,
        proxying(engine, policies=(LEARNING,), hardware=A100_80G) as proxy,
        proxy.client() as client,
    ):
        client.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
        await client.until(EVENT)
        seen.set()
        await client.until(LAST_CHUNK)
        balance = proxy.plane.fleet.balance_of(LEARNING)
        assert balance is not None
        assert balance.reference_s > 0
        assert balance.exponents == {"a100-80g": 0}
        (learnt,) = snapshot_of(proxy).learnt
        assert (learnt.policy, learnt.exponents, learnt.high_load) == (LEARNING.label, {"a100-80g": 0}, None)
        assert learnt.reference_s == balance.reference_s
        assert (
            'pointsman_policy_hardware_exponent{policy="default",hardware="a100-80g"} 0' in expose(proxy.plane).decode()
        )


async def test_high_load_is_told_where_a_policy_asks() -> None:
    policy = Policy(load_adaptive=LoadAdaptive())
    async with FakeEngine() as engine, proxying(engine, policies=(policy,)) as proxy:
        (learnt,) = snapshot_of(proxy).learnt
        assert (learnt.exponents, learnt.reference_s, learnt.high_load) == ({}, None, False)
        assert 'pointsman_policy_high_load{policy="default"} 0' in expose(proxy.plane).decode()


async def test_a_plain_policy_learns_nothing() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        assert snapshot_of(proxy).learnt == ()


@pytest.mark.parametrize(
    "script",
    [answers_json(b"{}"), streams([OVERLOADED, DONE])],
    ids=["a whole answer", "an error inside a stream"],
)
async def test_hardware_is_not_learnt_about_from_what_shows_no_first_token(script: Script) -> None:
    async with FakeEngine(script) as engine, proxying(engine, policies=(LEARNING,), hardware=A100_80G) as proxy:
        await proxy.chat(stream=True)
        assert proxy.plane.fleet.balance_of(LEARNING) is None
