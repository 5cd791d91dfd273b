"""Invented conversations grow by their answers, keep their rate, and are the same for the same seed."""

from itertools import islice

import orjson
import pytest

from router.replay.call import BodyWriter, Call
from router.replay.conversations import PERSONAS, ConversationSource
from router.replay.exchange import Exchange

WRITER = BodyWriter("m")


def source(persona: str = "chatbot", rate: float = 10.0, seed: int = 1, **options: object) -> ConversationSource:
    return ConversationSource(PERSONAS[persona], WRITER, rate, seed, **{"varying": False, "limit": None, **options})


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


@pytest.mark.parametrize("persona", sorted(PERSONAS))
async def test_the_rate_is_the_one_asked_for_from_the_beginning(persona: str) -> None:
    talks = source(persona, rate=20.0)
    due: list[tuple[float, Call]] = []
    reply = await answered("ok")
    horizon_s = 120.0
    for moment_s, call in talks.arrivals():
        if moment_s > horizon_s:
            break
        while call is not None and moment_s <= horizon_s:
            due.append((moment_s, call))
            follow_up = talks.follow_up(call, reply)
            if follow_up is None:
                break
            moment_s, call = moment_s + follow_up.delay_s, follow_up.call
    early = sum(moment_s < horizon_s / 4 for moment_s, _ in due)
    assert len(due) == pytest.approx(20.0 * horizon_s, rel=0.15)
    assert early == pytest.approx(20.0 * horizon_s / 4, rel=0.2)


def test_the_same_seed_says_the_same() -> None:
    one, two, other = ([call.body() for _, call in islice(source(seed=seed).arrivals(), 30)] for seed in (5, 5, 6))
    assert one == two != other


def test_system_prompts_are_shared_and_some_are_popular() -> None:
    prompts = [orjson.loads(call.body())["messages"][0]["content"] for _, call in islice(source().arrivals(), 400)]
    counts = sorted((prompts.count(prompt) for prompt in set(prompts)), reverse=True)
    assert len(counts) == PERSONAS["chatbot"].system_prompts
    assert counts[0] > 3 * counts[-1]


async def test_a_limit_counts_every_turn() -> None:
    talks = source(limit=25)
    reply = await answered("ok")
    calls = 0
    for _, call in talks.arrivals():
        while call is not None:
            calls += 1
            follow_up = talks.follow_up(call, reply)
            call = None if follow_up is None else follow_up.call
    assert calls == talks.total == 25


def test_a_varying_rate_swings_around_its_mean() -> None:
    moments = [moment for moment, _ in islice(source("api", rate=50.0, varying=True).arrivals(), 9000)]
    quarters = [sum(45 * index <= moment < 45 * (index + 1) for moment in moments) for index in range(4)]
    assert quarters[0] > 1.15 * quarters[2]
    assert sum(quarters) == pytest.approx(9000, rel=0.05)
