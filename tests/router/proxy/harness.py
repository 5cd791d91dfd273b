"""A worker's data plane in this process, in front of fake engines, and clients that show every byte."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import h11

from router.config import ConfigDocument, InstanceConfig, WorkloadConfig
from router.core.policy import Policy
from router.proxy.breaker import BreakerRule
from router.proxy.limits import Limits
from router.proxy.plane import Plane
from router.proxy.server import ProxyServer
from tests.fakes.engine import FakeEngine

MODEL = "m"
CHAT = "/v1/chat/completions"


class Proxy:
    """A running data plane. ``engines`` are named e0, e1, ... in order."""

    def __init__(self, plane: Plane, server: ProxyServer, port: int, engines: Sequence[FakeEngine]) -> None:
        self.plane = plane
        self.server = server
        self.port = port
        self.engines = list(engines)

    def apply(self, engines: Sequence[FakeEngine], **changes: Any) -> None:
        """Put a configuration with these engines into force."""
        self.engines = list(engines)
        revision = 1 if self.plane.table is None else self.plane.table.revision + 1
        self.plane.apply(document(engines, revision, **changes))

    @property
    def counters(self) -> dict[str, int]:
        """Everything that must be 0 when nothing is going on."""
        fleet = self.plane.fleet
        return {
            "in_flight": self.plane.in_flight,
            "held_bytes": self.plane.held_bytes,
            "bs": sum(i.view.bs for i in fleet),
            "own_requests": sum(i.own_requests for i in fleet),
            "own_waiting": sum(i.own_waiting for i in fleet),
            "queued_prefill_tokens": sum(i.own_queued_prefill_tokens for i in fleet),
            "active_kv_tokens": sum(i.active_kv_tokens for i in fleet),
            "on_links": sum(len(link.exchanges) for link in self.plane.links.values()),
        }

    def outcomes(self, workload: str = "default") -> dict[str, int]:
        self.plane.stats.roll()
        return dict(self.plane.stats.totals.workload(workload).outcomes)

    async def settle(self) -> None:
        """Wait until no request is being served."""
        while self.plane.in_flight:
            await asyncio.sleep(0.001)

    def expire(self) -> None:
        """Let every time limit run out."""
        self.plane.sweep(self.plane.loop.time() + 1e6)

    async def post(self, body: dict[str, Any] | bytes, path: str = CHAT, **fields: str) -> "Answer":
        """Post on a connection of its own."""
        async with self.client() as client:
            return await client.post(body, path, **fields)

    async def chat(self, text: str = "hi", **fields: Any) -> "Answer":
        return await self.post(chat_body(text, **fields))

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        client = Client(reader, writer)
        try:
            yield client
        finally:
            writer.close()


def chat_body(text: str = "hi", **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def document(
    engines: Sequence[FakeEngine],
    revision: int = 1,
    models: tuple[str, ...] = (MODEL,),
    policies: tuple[Policy, ...] = (Policy(),),
    **instance: Any,
) -> ConfigDocument:
    return ConfigDocument(
        revision=revision,
        instances=tuple(
            InstanceConfig(id=f"id-{engine.port}", name=f"e{n}", url=engine.url, models=models, **instance)
            for n, engine in enumerate(engines)
        ),
        policies=policies,
        workloads=tuple(WorkloadConfig(name=policy.name, policy=policy.name) for policy in policies),
    )


@asynccontextmanager
async def proxying(
    *engines: FakeEngine,
    limits: Limits | None = None,
    rule: BreakerRule | None = None,
    most_connections: int | None = None,
    **changes: Any,
) -> AsyncIterator[Proxy]:
    """Run a data plane in front of engines that run already."""
    plane = Plane(asyncio.get_running_loop(), Random(1), limits or Limits(drain_s=1.0), 100_000, rule)
    server = ProxyServer(plane, most_connections)
    _, port = await server.listen("127.0.0.1", 0)
    proxy = Proxy(plane, server, port, engines)
    plane.apply(document(engines, **changes))
    try:
        yield proxy
    finally:
        await server.stop()


class Answer:
    """An answer as h11 understood it."""

    def __init__(self, status: int, fields: dict[str, str], body: bytes, pieces: list[bytes]) -> None:
        self.status = status
        self.fields = fields
        self.body = body
        self.pieces = pieces

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error answer."""
        return str(self.json["error"]["code"])


class Client:
    """A client connection; what comes back is read by h11, which is strict."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._wire = h11.Connection(h11.CLIENT)
        self.pieces: list[bytes] = []
        """What has come of the body of the current answer, whole or not."""

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def post(self, body: dict[str, Any] | bytes, path: str = CHAT, **fields: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send(request_bytes(data, path, **fields))
        return await self.answer()

    async def get(self, path: str) -> Answer:
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return await self.answer(method="GET")

    async def answer(self, method: str = "POST") -> Answer:
        """Read one answer.

        :raises h11.RemoteProtocolError: when it is cut short or malformed.
        """
        self._wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        self._wire.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        self._wire.send(h11.EndOfMessage())
        head: h11.Response | None = None
        pieces = self.pieces = []
        while True:
            event = self._wire.next_event()
            if event is h11.NEED_DATA:
                self._wire.receive_data(await self.reader.read(65536))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                break
        assert head is not None
        fields = {name.decode(): value.decode() for name, value in head.headers}
        return Answer(head.status_code, fields, b"".join(pieces), pieces)

    async def until(self, mark: bytes) -> bytes:
        """Read raw bytes up to a mark."""
        return await self.reader.readuntil(mark)

    async def rest(self) -> bytes:
        """Read raw bytes until the router closes."""
        return await self.reader.read()

    def reset(self) -> None:
        """Go away without a word."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def request_bytes(body: bytes, path: str = CHAT, **fields: str) -> bytes:
    """Return a whole request; underscores in names of fields become hyphens."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{lines}"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
