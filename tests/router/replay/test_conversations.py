"""Invented conversations grow by their answers, keep their rate, and are the same for the same seed."""

from itertools import islice

import orjson
import pytest

from router.replay.call import BodyWriter, Call
from router.replay.conversations import CHATS, ConversationSource
from router.replay.exchange import Exchange

WRITER = BodyWriter("m")


def source(rate: float = 10.0, seed: int = 1, limit: int | None = None) -> ConversationSource:
    return ConversationSource(CHATS, WRITER, rate, seed, limit=limit)


async def answered(text: str) -> Exchange:
    exchange = Exchange(lambda: 0.0, keep_text=True)
    exchange.status = 200
    exchange.data(b"data: " + orjson.dumps({"choices": [{"delta": {"content": text}}]}) + b"\n\ndata: [DONE]\n\n")
    exchange.complete()
    return exchange


async def test_the_next_turn_carries_the_answer() -> None:
    talks = source()
    for _, call in talks.arrivals():
        follow_up = talks.follow_up(call, await answered("the answer"))
        if follow_up is not None:
            break
    before, after = (orjson.loads(each.body())["messages"] for each in (call, follow_up.call))
    assert after[: len(before)] == before
    assert after[len(before)] == {"role": "assistant", "content": "the answer"}
    assert [message["role"] for message in after] == ["system", "user", "assistant", "user"]


async def test_a_conversation_ends_when_a_turn_fails() -> None:
    talks = source()
    for _, call in islice(talks.arrivals(), 20):
        assert talks.follow_up(call, None) is None


async def turns_of(talks: ConversationSource, first: Call, begin_s: float) -> list[float]:
    """Return when each turn of a conversation is due, its answers taking no time."""
    reply = await answered("ok")
    moments, call = [begin_s], first
    while (follow_up := talks.follow_up(call, reply)) is not None:
        call = follow_up.call
        moments.append(moments[-1] + follow_up.delay_s)
    return moments


async def test_the_rate_is_the_one_asked_for_from_the_beginning() -> None:
    talks = source(rate=20.0)
    horizon_s = 120.0
    due: list[float] = []
    for moment_s, call in talks.arrivals():
        if moment_s > horizon_s:
            break
        due += await turns_of(talks, call, moment_s)
    inside = sum(moment < horizon_s for moment in due)
    early = sum(moment < horizon_s / 4 for moment in due)
    assert inside == pytest.approx(20.0 * horizon_s, rel=0.15)
    assert early == pytest.approx(20.0 * horizon_s / 4, rel=0.2)


def test_the_same_seed_says_the_same() -> None:
    one, two, other = ([call.body() for _, call in islice(source(seed=seed).arrivals(), 30)] for seed in (5, 5, 6))
    assert one == two != other


def test_system_prompts_are_shared_and_some_are_popular() -> None:
    prompts = [orjson.loads(call.body())["messages"][0]["content"] for _, call in islice(source().arrivals(), 400)]
    counts = sorted((prompts.count(prompt) for prompt in set(prompts)), reverse=True)
    assert len(counts) == CHATS.system_prompts
    assert counts[0] > 3 * counts[-1]


async def test_a_limit_counts_every_turn() -> None:
    talks = source(limit=25)
    turns = [len(await turns_of(talks, call, moment_s)) for moment_s, call in talks.arrivals()]
    assert sum(turns) == talks.total == 25
