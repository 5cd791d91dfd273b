"""Floods of connections that do nothing, little or nonsense: the others are served as before, and nothing piles up.

``POINTSMAN_FLOOD=10000`` runs with the full number of connections.
"""

import asyncio
import errno
import os
import resource
import socket

import pytest

from router.proxy.breaker import BreakerState
from router.proxy.client import ClientConnection
from router.proxy.limits import Limits
from router.proxy.places import LEAST_IDLE_S, LIST_EVERY_S
from router.proxy.process import allow_open_files, most_open_files
from tests.fakes.engine import FakeEngine
from tests.fakes.idle_time import in_idle_time
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Answer, Proxy, proxying, request_bytes

FLOOD = int(os.environ.get("POINTSMAN_FLOOD", "600"))
LIMITS = Limits(drain_s=1.0)


@pytest.fixture(autouse=True)
def many_files() -> None:
    """Let this process open both ends of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * FLOOD + 500
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.fail(f"{wanted} open files are needed, {hard} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def opened(proxy: Proxy, count: int, first: bytes = b"") -> list[asyncio.StreamWriter]:
    """Open connections that send something and then stay."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        if first:
            writer.write(first)
        writers.append(writer)
    return writers


async def open_from_outside(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect without the loop's own way of connecting."""
    connection = socket.create_connection(("127.0.0.1", port))
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_accepted_socket(lambda: asyncio.StreamReaderProtocol(reader), connection)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def proxy_get(proxy: Proxy, path: str) -> Answer:
    async with proxy.client() as client:
        return await client.get(path)


@pytest.mark.parametrize(
    "first",
    [b"", b"POST /v1/chat/completions HTT", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 20_000],
    ids=["idle", "slowloris", "large heads"],
)
async def test_others_are_served_while_a_flood_waits_and_it_is_cleared_in_time(first: bytes) -> None:
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS) as proxy:
        flood = await opened(proxy, FLOOD, first)
        while proxy.plane.open_clients < FLOOD:
            await asyncio.sleep(0)
        for _ in range(20):
            assert (await proxy.chat()).status == 200
        while proxy.plane.held_bytes < FLOOD * len(first):
            await asyncio.sleep(0)
        assert proxy.plane.held_bytes == FLOOD * len(first)
        proxy.expire()
        proxy.expire()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert len(proxy.plane.deadlines) == 0
        assert proxy.plane.held_bytes == 0
        for writer in flood:
            writer.close()


async def test_heads_that_are_held_have_a_limit_together() -> None:
    limits = Limits(max_buffered_bytes=50_000, drain_s=1.0)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 20_000
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy:
        flood = await opened(proxy, 2, head)
        while proxy.plane.held_bytes < 2 * len(head):
            await asyncio.sleep(0)
        async with proxy.client() as client:
            client.send(head)
            answer = await client.answer()
            assert (answer.status, answer.code) == (503, "out_of_memory")
        assert (await proxy.chat()).status == 200
        for writer in flood:
            writer.close()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert proxy.plane.held_bytes == 0


async def test_bodies_that_never_end_make_room_for_small_requests() -> None:
    limits = Limits(max_buffered_bytes=50_000, drain_s=1.0)
    body = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n" + b"a" * 20_000
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy:
        async with proxy.client() as slow, proxy.client() as slower:
            slower.send(body + b"a" * 5_000)
            slow.send(body)
            while proxy.plane.held_bytes < 2 * 20_000 + 5_000:
                await asyncio.sleep(0)
            assert (await proxy.chat("x" * 10_000)).status == 200
            refused = await slower.answer()
            assert (refused.status, refused.code) == (503, "out_of_memory")
            assert await slower.rest() == b""
            slow.send(b"a" * 10_000)
            assert (await slow.answer()).status == 400  # which is no JSON
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert proxy.plane.held_bytes == 0


async def test_a_flood_of_bad_requests_is_answered_and_forgotten() -> None:
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS) as proxy:
        flood = await opened(proxy, FLOOD, b"GET / HTTP/9.9\r\n\r\n")
        assert (await proxy.chat()).status == 200
        for writer in flood:
            writer.close()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert not any(proxy.counters.values())


class Written(asyncio.Transport):
    """The client's end as the router writes to it."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False


async def test_of_the_requests_that_a_client_pipelines_one_is_served_a_turn() -> None:
    many = 100
    async with FakeEngine() as engine, proxying(engine) as proxy:
        transport, client = Written(), ClientConnection(proxy.server)
        client.connection_made(transport)
        client.data_received(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * many)
        served = [transport.data.count(b"ok\n")]
        while served[-1] < many:
            await asyncio.sleep(0)
            served.append(transport.data.count(b"ok\n"))
        assert served == list(range(1, many + 1))
        client.connection_lost(None)


async def test_metrics_are_counted_once_a_turn_however_many_ask() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        clients = [ClientConnection(proxy.server) for _ in range(5)]
        transports = [Written() for _ in clients]
        for client, transport in zip(clients, transports, strict=True):
            client.connection_made(transport)
            client.data_received(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert all(b"\npointsman_clients 1\n" in transport.data for transport in transports)
        await asyncio.sleep(0)
        clients[0].data_received(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"\npointsman_clients 5\n" in transports[0].data
        for client in clients:
            client.connection_lost(None)


async def test_a_client_that_reads_no_answers_gets_no_further_ones_until_it_does() -> None:
    many = 600
    limits = Limits(write_buffer_bytes=10_000, drain_s=1.0)
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy:
        longest = len((await proxy_get(proxy, "/metrics")).body) + 10_000
        async with proxy.client() as client:
            client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * many)
            while not any(other._is_paused for other in proxy.server._clients):
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            (served,) = proxy.server._clients
            assert served._transport is not None
            assert served._transport.get_write_buffer_size() < 10_000 + longest
            for _ in range(many):
                head = await client.until(b"\r\n\r\n")
                await client.reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            assert (await client.get("/livez")).status == 200


@in_idle_time
async def test_further_clients_are_turned_away_while_those_that_are_here_reach_their_engines() -> None:
    most = 20
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS, most_connections=most) as proxy:
        async with proxy.client() as first:
            assert (await first.get("/livez")).status == 200
            flood = await opened(proxy, most - 1, b"GET /")  # and more of it any moment
            await asyncio.sleep(2 * LEAST_IDLE_S)
            first.send(b"GET ")
            await asyncio.sleep(LIST_EVERY_S)
            async with proxy.client() as late:
                answer = await late.answer()
                assert (answer.status, answer.code) == (503, "too_many_connections")
                assert await late.rest() == b""
            first.send(b"/livez HTTP/1.1\r\nHost: m\r\n\r\n")
            assert (await first.answer("GET")).status == 200
            assert (await first.post({"model": "m", "messages": []})).status == 200
        assert (proxy.plane.clients_refused, proxy.plane.clients_that_made_way) == (1, 0)
        for writer in flood:
            writer.close()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.001)
        assert (await proxy.chat()).status == 200


@in_idle_time
async def test_who_has_been_idle_longest_makes_way() -> None:
    async with FakeEngine() as engine, proxying(engine, limits=LIMITS, most_connections=4) as proxy:
        async with proxy.client() as longest, proxy.client() as idle, proxy.client() as busy, proxy.client() as recent:
            for client in (longest, busy, idle, recent):
                assert (await client.get("/livez")).status == 200
                await asyncio.sleep(LEAST_IDLE_S / 2)
            busy.send(b"GET ")
            assert (await recent.get("/livez")).status == 200
            async with proxy.client() as fifth, proxy.client() as sixth:
                assert (await fifth.get("/livez")).status == 200
                assert (await sixth.get("/livez")).status == 200
                assert await longest.rest() == await idle.rest() == b""
                assert (await recent.get("/livez")).status == 200
                busy.send(b"/livez HTTP/1.1\r\nHost: m\r\n\r\n")
                assert (await busy.answer("GET")).status == 200
        assert (proxy.plane.clients_refused, proxy.plane.clients_that_made_way) == (0, 2)


async def test_descriptors_that_run_out_here_are_held_against_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        loop = asyncio.get_running_loop()

        async def none_left(*_: object, **__: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        with monkeypatch.context() as out_of_files:
            out_of_files.setattr(loop, "create_connection", none_left)
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await open_from_outside(proxy.port)
                writer.write(request_bytes(b'{"model":"m","messages":[]}', Connection="close"))
                raw = await reader.read()
                writer.close()
        assert raw.startswith(b"HTTP/1.1 503 ")
        assert b'"code":"out_of_connections"' in raw
        assert all(link.breaker.state is BreakerState.CLOSED for link in proxy.plane.links.values())
        assert (await proxy.chat()).status == 200
        assert not any(proxy.counters.values())


def test_a_worker_takes_the_descriptors_that_it_may_have() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        allow_open_files()
        assert most_open_files() > 256 or hard == 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
