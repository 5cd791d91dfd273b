"""A worker measures its instances by the streams that pass."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from router.config import ConfigDocument
from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.proxy.link import Link
from router.state.pace.cost_row import RowKind, decode_row, first_token_row
from router.state.pace.pace_meter import ENOUGH_ROWS
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, answers_json, chunk, streams
from tests.fakes.idle_time import in_idle_time
from tests.router.proxy.harness import Proxy, document, proxying

TOKENS = 20
TOKEN_S = 0.004
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 100, "completion_tokens": TOKENS, "prompt_tokens_details": {"cached_tokens": 64}}


async def generates(request: Received, peer: Peer) -> None:
    """Stream tokens at a steady pace, and say how many they were."""
    await asyncio.sleep(0.01)
    peer.send(STREAM_HEAD + chunk(EVENT))
    for _ in range(TOKENS - 1):
        await asyncio.sleep(TOKEN_S)
        peer.send(chunk(EVENT))
    usage = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
    peer.send(chunk(usage + DONE) + LAST_CHUNK)


def link_of(proxy: Proxy) -> Link:
    (link,) = proxy.plane.links.values()
    return link


@in_idle_time
async def test_a_stream_shows_the_time_of_its_prefill_and_of_its_steps() -> None:
    async with FakeEngine(generates) as engine, proxying(engine) as proxy:
        await proxy.chat(stream=True)
        await proxy.settle()
        first, decode = sorted(link_of(proxy).pace.rows, key=lambda row: row.kind is RowKind.DECODE)
    assert first.kind is RowKind.FIRST
    assert first.prefill_tokens == 100 - 64
    assert first.took_s == pytest.approx(0.01)
    assert decode.kind is RowKind.DECODE
    assert (decode.steps, decode.prefill_tokens, decode.sequence_steps) == (TOKENS - 1, 0, TOKENS - 1)
    assert decode.took_s == pytest.approx((TOKENS - 1) * TOKEN_S)


@in_idle_time
async def test_streams_at_once_are_seen_as_one_batch() -> None:
    async with FakeEngine(generates) as engine, proxying(engine) as proxy:
        await asyncio.gather(*(proxy.chat(f"{n}", stream=True) for n in range(4)))
        await proxy.settle()
        rows = list(link_of(proxy).pace.rows)
    batches = [row.sequence_steps / row.steps for row in rows if row.kind is RowKind.DECODE]
    assert len(batches) == 4
    assert batches == [pytest.approx(4)] * 4


async def test_what_shows_no_steps_is_not_measured() -> None:
    for script in (answers_json(json.dumps({"usage": USAGE}).encode()), streams([b'data: {"error":{"code":503}}\n\n'])):
        async with FakeEngine(script) as engine, proxying(engine) as proxy:
            await proxy.chat(stream=True)
            await proxy.settle()
            assert len(link_of(proxy).pace.rows) == 0


async def test_enough_of_it_becomes_the_instances_profile_until_another_engine_takes_its_place() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, hardware=A100_80G) as proxy:
        pace = link_of(proxy).pace
        for n in range(ENOUGH_ROWS):
            pace.rows.add(first_token_row(1000 + n, 0.5, sequences=0, kv_tokens=0, max_batch_tokens=8192))
            pace.rows.add(decode_row(100 + n, 2.0, sequences=4, kv_tokens=0, prefill_tokens=0))
        assert proxy.plane.fleet.views[0].observed is None
        proxy.plane.sweep(proxy.plane.loop.time() + 1)
        observed = proxy.plane.fleet.views[0].observed
        assert observed is not None
        assert observed.name == "observed-e0"
        assert proxy.plane.fleet.views[0].hardware is A100_80G
        proxy.apply([one], hardware=A100_80G)
        assert proxy.plane.fleet.views[0].observed is observed
        proxy.plane.apply(_at(proxy, two))
        assert proxy.plane.fleet.views[0].observed is None


def _at(proxy: Proxy, other: FakeEngine) -> ConfigDocument:
    """Return a document in which another engine stands behind the name."""
    assert proxy.plane.table is not None
    plain = document(proxy.engines, proxy.plane.table.revision + 1)
    return replace(plain, instances=(replace(plain.instances[0], url=other.url),))


async def test_a_policy_may_score_by_what_was_observed() -> None:
    policy = Policy(normalize_hardware=True, observed_hardware=True)
    async with (
        FakeEngine(answers_json(b"{}")) as one,
        FakeEngine(answers_json(b"{}")) as two,
        proxying(one, two, hardware=A100_80G, policies=(policy,)) as proxy,
    ):
        slow, fast = proxy.plane.links[0].pace, proxy.plane.links[1].pace
        for n in range(ENOUGH_ROWS):
            for pace, factor in ((slow, 3.0), (fast, 0.5)):
                pace.rows.add(first_token_row(1000 + n, 0.5 * factor, sequences=0, kv_tokens=0, max_batch_tokens=8192))
                pace.rows.add(decode_row(100 + n, 2.0 * factor, sequences=4, kv_tokens=0, prefill_tokens=0))
        for later_s in (1, 3):
            proxy.plane.sweep(proxy.plane.loop.time() + later_s)
        chosen = [(await proxy.chat(f"other {n}")).fields["x-pointsman-instance"] for n in range(4)]
    assert chosen == ["e1"] * 4
