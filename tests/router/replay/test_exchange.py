"""What counts as an answer, and what as which error."""

import asyncio

import pytest

from router.replay.errors import ExchangeError
from router.replay.exchange import Exchange

TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":" hi"},"finish_reason":null}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{"content":" ho"},"finish_reason":"length"}]}\n\n'
USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":40,"total_tokens":42,"completion_tokens":2,'
    b'"prompt_tokens_details":{"cached_tokens":32}}}\n\n'
)
DONE = b"data: [DONE]\n\n"


class Ticks:
    """Every reading of the clock is one second later."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


async def played(*parts: bytes, status: int = 200, keep_text: bool = False) -> Exchange:
    exchange = Exchange(Ticks(), keep_text=keep_text)
    exchange.status = status
    for part in parts:
        exchange.data(part)
    exchange.complete()
    return exchange


async def kind_of(exchange: Exchange) -> str:
    with pytest.raises(ExchangeError) as caught:
        await exchange.finished
    return caught.value.kind


async def test_a_stream_gives_times_usage_and_text() -> None:
    exchange = await played(b": keep-alive\n\n", TOKEN, LAST, USAGE, DONE, keep_text=True)
    await exchange.finished
    assert (exchange.first_s, exchange.last_s, exchange.chunks) == (1.0, 2.0, 2)
    assert (exchange.prompt_tokens, exchange.cached_tokens, exchange.completion_tokens) == (40, 32, 2)
    assert exchange.text == " hi ho"


async def test_missing_token_details_mean_nothing_was_cached() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1,"prompt_tokens_details":null}}\n\n'
    exchange = await played(TOKEN, usage, DONE)
    await exchange.finished
    assert exchange.cached_tokens == 0


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((b'data: {"error": {"message": "busy", "code": 503}}\n\n', DONE), "stream_503"),
        ((TOKEN, b'data: {"error": "flat"}\n\n', DONE), "stream_error"),
        ((TOKEN, LAST.replace(b"length", b"abort"), DONE), "aborted"),
        ((TOKEN,), "truncated"),
        ((TOKEN, DONE[:-1]), "truncated"),
    ],
)
async def test_a_stream_that_went_wrong_is_an_error(parts: tuple[bytes, ...], kind: str) -> None:
    assert await kind_of(await played(*parts)) == kind


async def test_another_status_is_an_error_with_its_body() -> None:
    exchange = await played(b'{"error":"Unauthorized"}', status=401)
    with pytest.raises(ExchangeError, match="Unauthorized") as caught:
        await exchange.finished
    assert caught.value.kind == "http_401"


async def test_the_end_comes_once() -> None:
    exchange = await played(TOKEN, DONE)
    exchange.fail("disconnected")
    await exchange.finished
    broken = Exchange(asyncio.get_running_loop().time)
    broken.fail("disconnected")
    broken.complete()
    assert await kind_of(broken) == "disconnected"
