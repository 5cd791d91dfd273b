"""Traffic without an end is counted without end, in bounded memory."""

import asyncio

import pytest

from router.replay import tally as module
from router.replay.exchange import Exchange
from router.replay.tally import Tally


async def ended(first_s: float) -> Exchange:
    exchange = Exchange(asyncio.get_running_loop().time)
    exchange.first_s, exchange.last_s = first_s, first_s + 1.0
    exchange.completion_tokens, exchange.prompt_tokens, exchange.cached_tokens = 5, 100, 64
    exchange.instance, exchange.policy = "a", "default@3"
    return exchange


async def test_an_answer_is_counted() -> None:
    tally = Tally()
    tally.record(await ended(2.5), sent_s=2.0)
    assert (list(tally.ttft_s), list(tally.e2e_s), list(tally.tpot_s)) == ([0.5], [1.5], [0.25])
    assert (tally.prompt_tokens, tally.cached_tokens, tally.completion_tokens) == (100, 64, 5)
    assert (tally.instances, tally.policies) == ({"a": 1}, {"default@3": 1})


async def test_the_newest_durations_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VALUES", 100)
    tally = Tally()
    for number in range(1000):
        tally.record(await ended(float(number)), sent_s=0.0)
    assert 50 <= len(tally.ttft_s) <= 100
    assert tally.ttft_s[-1] == 999.0
    assert tally.done == 1000
