"""The client against servers that misbehave at the level of connections."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from router.replay.client import HttpClient, Target
from router.replay.errors import ExchangeError, TargetError
from router.replay.exchange import Exchange

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\ndata: [DONE]\n\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[HttpClient]:
    """Run ``serve`` for every connection, with the connection's number."""
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            await serve(reader, writer, connections)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = HttpClient(Target.parse(f"http://127.0.0.1:{port}"), {"x-test": "1"})
    try:
        yield client
    finally:
        client.close()
        server.close()
        await server.wait_closed()


async def one_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def send(client: HttpClient) -> Exchange:
    exchange = Exchange(time.monotonic)
    await client.post("/v1/chat/completions", b"{}", exchange, b"x-more: 2\r\n")
    return exchange


async def failure(client: HttpClient) -> str:
    with pytest.raises(ExchangeError) as caught:
        await send(client)
    return caught.value.kind


async def test_one_connection_is_used_again_and_headers_are_sent() -> None:
    seen: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        for _ in range(2):
            seen.append((number, await one_request(reader)))
            writer.write(OK)

    async with serving(serve) as client:
        await send(client)
        await send(client)
    assert [number for number, _ in seen] == [1, 1]
    assert b"POST /v1/chat/completions HTTP/1.1\r\n" in seen[0][1]
    assert b"x-test: 1\r\n" in seen[0][1]
    assert b"x-more: 2\r\n" in seen[0][1]


async def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await one_request(reader)
        writer.write(OK)
        if number == 1:
            await one_request(reader)
            writer.transport.abort()

    async with serving(serve) as client:
        await send(client)
        assert (await send(client)).done


async def test_a_fresh_connection_that_breaks_is_not_tried_again() -> None:
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        connections.append(number)
        await one_request(reader)

    async with serving(serve) as client:
        assert await failure(client) == "disconnected"
    assert connections == [1]


async def test_an_answer_cut_short_is_not_tried_again() -> None:
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        connections.append(number)
        await one_request(reader)
        writer.write(OK)
        await one_request(reader)
        writer.write(OK[:-4])

    async with serving(serve) as client:
        await send(client)
        assert await failure(client) == "disconnected"
    assert connections == [1]


async def test_what_is_not_http_is_a_bad_response() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await one_request(reader)
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await reader.read()

    async with serving(serve) as client:
        assert await failure(client) == "bad_response"


async def test_nobody_listening_is_a_connect_error() -> None:
    async with serving(lambda *_: asyncio.sleep(0)) as client:
        pass
    assert await failure(client) == "connect"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h:81", Target("h", 81, False, "")),
        ("https://h", Target("h", 443, True, "")),
        ("http://h/v1/", Target("h", 80, False, "")),
        ("http://h/a/b", Target("h", 80, False, "/a/b")),
    ],
)
def test_addresses_are_read(url: str, target: Target) -> None:
    assert Target.parse(url) == target


@pytest.mark.parametrize("url", ["h:80", "ftp://h", "http://", "http://h:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(TargetError):
        Target.parse(url)
