"""Connections that engines end before anybody could use them."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from router.proxy.address import parse_address
from router.proxy.failure import Failure, FailureKind
from router.proxy.fetch import FetchFailed, FetchRequest, fetch
from router.proxy.limits import Limits
from router.proxy.pool import Pool
from router.proxy.upstream import UpstreamConnection
from router.proxy.wire.answer_heads import AnswerHeads

METRICS = FetchRequest(path=b"/metrics", limit_s=60)


class Ended(asyncio.Transport):
    """A transport whose other end has gone."""

    def is_closing(self) -> bool:
        return True


class LosingLoop:
    """A loop whose new connections are lost before the task that waits for them has its turn."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(self, make: Callable[[], UpstreamConnection], *_: Any, **__: Any) -> Any:
        connection = make()
        connection.connection_made(Ended())
        connection.connection_lost(None)
        return None, connection


class LateLosingPool:
    """A pool whose new connections are lost after they were handed over and before the next turn."""

    def __init__(self, *args: Any) -> None:
        self._pool = Pool(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def connect(self, on_connected: Callable[[UpstreamConnection], None], _: Any) -> asyncio.Task[None]:
        async def later() -> None:
            connection = UpstreamConnection(self._pool, 1000, AnswerHeads())
            connection.connection_made(Ended())
            on_connected(connection)
            connection.connection_lost(None)

        return asyncio.get_running_loop().create_task(later())


def pool_of(kind: Callable[..., Any], loop: Any) -> Pool:
    return cast(Pool, kind(parse_address("http://127.0.0.1:1"), Limits(), loop))


async def test_a_connection_that_is_lost_before_its_first_use_is_a_failure_to_connect() -> None:
    pool = pool_of(Pool, LosingLoop())
    made: list[UpstreamConnection] = []
    failed: list[Failure] = []
    await pool.connect(made.append, failed.append)
    assert (made, [failure.kind for failure in failed]) == ([], [FailureKind.CONNECT])
    assert pool.open_connections == 0


async def test_asking_over_a_connection_that_is_lost_at_once_fails_at_once() -> None:
    with pytest.raises(FetchFailed, match="as soon as it was made"):
        await fetch(pool_of(Pool, LosingLoop()), METRICS)


async def test_asking_over_a_connection_that_is_lost_between_two_turns_fails_at_once() -> None:
    with pytest.raises(FetchFailed, match="as soon as it was made"):
        await fetch(pool_of(LateLosingPool, asyncio.get_running_loop()), METRICS)
