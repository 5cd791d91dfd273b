"""Requests of a hot prefix begin alike, end apart, and come at their rate."""

from itertools import islice

import orjson
import pytest

from router.replay.call import BodyWriter
from router.replay.hot_prefix import SHARED_TOKENS, HotPrefixSource

WRITER = BodyWriter("m")


def messages(seed: int, limit: int) -> list[list[dict[str, str]]]:
    source = HotPrefixSource(WRITER, 10.0, seed, limit=limit)
    return [orjson.loads(call.body())["messages"] for _, call in source.arrivals()]


def test_all_share_one_long_prompt_and_none_a_question() -> None:
    sent = messages(seed=1, limit=30)
    assert len({each[0]["content"] for each in sent}) == 1
    assert len(sent[0][0]["content"]) == 4 * SHARED_TOKENS
    assert len({each[1]["content"] for each in sent}) == 30


def test_another_seed_is_another_prefix() -> None:
    assert messages(1, 1) == messages(1, 1) != messages(2, 1)


def test_the_rate_is_the_one_asked_for() -> None:
    source = HotPrefixSource(WRITER, 10.0, 1, limit=None)
    *_, (last_s, _) = islice(source.arrivals(), 2000)
    assert last_s == pytest.approx(200, rel=0.1)
