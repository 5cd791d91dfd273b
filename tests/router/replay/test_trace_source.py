"""Prompts made from a trace share exactly what its blocks say, measured by an engine."""

import asyncio
import time
from collections.abc import Iterable
from itertools import islice

from router.engine.instance import EngineInstance
from router.engine.models import ServedModels
from router.replay.call import BodyWriter
from router.replay.client import HttpClient, Target
from router.replay.player import Pace, Player
from router.replay.tally import Tally
from router.replay.trace_source import TraceSource
from router.sim.traces.mooncake import load_mooncake
from router.sim.traces.record import Trace, TraceRequest, chain_of
from router.sim.traces.transforms import limited
from tests.patience import PATIENCE_S
from tests.router.engine.serving import serving
from tests.shared_material import shared_path

BLOCK = 64
MODELS = ServedModels(("tiny",), (), 200_000)


def trace(*requests: TraceRequest) -> Trace:
    return Trace(name="t", format="test", block_tokens=BLOCK, requests=requests, provenance="invented")


def request(tokens: int, ids: Iterable[int], **fields: object) -> TraceRequest:
    chain = chain_of(ids, tokens // BLOCK)
    return TraceRequest(**{"arrival_s": 0.0, "prompt_tokens": tokens, "output_tokens": 4, "blocks": chain, **fields})


async def replayed(source: TraceSource, engine: EngineInstance, pace: Pace, path: str) -> Tally:
    client = HttpClient(Target.parse(f"http://127.0.0.1:{engine.port}"), {})
    player = Player(source, client, path, pace, time.monotonic, Tally())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await player.play()
    finally:
        client.close()
    assert player.tally.errors == {}
    return player.tally


async def one_by_one(requests: Trace, *, chat: bool = True) -> Tally:
    """Replay in order, each request after the one before."""
    writer = BodyWriter("tiny", chat=chat)
    async with serving(models=MODELS) as engine:
        return await replayed(TraceSource(lambda lap: requests, writer), engine, Pace(1e6, concurrency=1), writer.path)


async def test_shared_blocks_are_cached_and_tails_are_not() -> None:
    requests = trace(request(64 * 4, [1, 2, 3, 4]), request(64 * 4 + 40, [1, 2, 3, 9]), request(64 * 3 + 40, [1, 2, 3]))
    for chat in (True, False):
        tally = await one_by_one(requests, chat=chat)
        assert tally.prompt_tokens == 64 * 4 + 64 * 4 + 40 + 64 * 3 + 40
        assert tally.cached_tokens == 2 * 64 * 3
        assert tally.completion_tokens == 12


async def test_a_recorded_trace_has_its_lengths_and_its_ideal_hits() -> None:
    requests = limited(load_mooncake(shared_path("traces/chatbot_mooncake_conversation.jsonl.gz")), 60)
    tally = await one_by_one(requests)
    assert tally.done == 60
    assert tally.prompt_tokens == sum(each.prompt_tokens for each in requests.requests)
    assert tally.completion_tokens == sum(each.output_tokens for each in requests.requests)
    assert tally.cached_tokens == ideal_hits(requests)


def ideal_hits(requests: Trace) -> int:
    """Tokens in leading blocks that an earlier request had, with a cache that never evicts (500k tokens suffice)."""
    seen: set[bytes] = set()
    hits = 0
    for each in requests.requests:
        blocks = [each.blocks[start : start + 8] for start in range(0, len(each.blocks), 8)]
        for block in blocks:
            if block not in seen:
                break
            hits += requests.block_tokens
        seen |= set(blocks)
    return hits


def test_a_session_waits_for_its_answers_and_others_do_not() -> None:
    turns = trace(
        request(64, [1], session="a"),
        request(128, [1, 2], session="a", think_s=2.5),
        request(192, [1, 2, 3], session="a", think_s=1.5),
        request(64, [7], arrival_s=4.0),
    )
    source = TraceSource(lambda lap: turns, BodyWriter("tiny"))
    calls = list(source.arrivals())
    assert [moment for moment, _ in calls] == [0.0, 4.0]
    second = source.follow_up(calls[0][1], None)
    assert second is not None
    third = source.follow_up(second.call, None)
    assert third is not None
    assert (second.delay_s, third.delay_s) == (2.5, 1.5)
    assert source.follow_up(third.call, None) is None
    assert source.follow_up(calls[1][1], None) is None


def test_arrivals_begin_at_once() -> None:
    requests = trace(*(request(64, [1], arrival_s=moment) for moment in (30.0, 30.5, 33.0)))
    assert [moment for moment, _ in TraceSource(lambda lap: requests, BodyWriter("tiny")).arrivals()] == [0.0, 0.5, 3.0]


def test_laps_follow_each_other_and_may_differ() -> None:
    def lap(number: int) -> Trace:
        return trace(*(request(64, [number], arrival_s=moment) for moment in (0.0, 2.0, 4.0)))

    source = TraceSource(lap, BodyWriter("tiny"), loop=True)
    calls = list(islice(source.arrivals(), 7))
    assert [moment for moment, _ in calls] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert calls[0][1].body() != calls[3][1].body()


def test_a_loop_repeats_blocks_but_not_tails() -> None:
    pair = trace(request(100, [1]), request(100, [2]))
    source = TraceSource(lambda lap: pair, BodyWriter("tiny", chat=False), loop=True)
    arrivals = source.arrivals()
    bodies = [next(arrivals)[1].body() for _ in range(4)]
    assert source.total is None
    shared = bodies[0].index(b'"prompt":"') + 10 + 64 * 4
    assert bodies[0][:shared] == bodies[2][:shared]
    assert bodies[0][:shared] != bodies[1][:shared]
    assert len(set(bodies)) == 4
