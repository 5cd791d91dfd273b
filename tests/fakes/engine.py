"""A fake engine: a real socket that plays scripts. It knows no HTTP beyond finding where a request ends."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from types import TracebackType
from typing import Self

from tests.ports import free_ports

HOST = "127.0.0.1"


class Received:
    """A request as it came."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.head = head
        self.body = body

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def fields(self) -> dict[str, str]:
        """Header values by lower-case name."""
        lines = (line.partition(b":") for line in self.head.split(b"\r\n")[1:] if line)
        return {name.decode().lower(): value.strip().decode() for name, _, value in lines}


class Peer:
    """The router's side of a connection, as a script sees it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.gone = asyncio.Event()
        """Set when the router closed the connection."""

    @property
    def buffered(self) -> int:
        """Bytes that the router has not taken yet."""
        return self._transport.get_write_buffer_size()

    def send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def reset(self) -> None:
        """Close without a word: the router sees ECONNRESET."""
        if self._transport.is_closing():
            return
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def send_slices(self, slices: Sequence[bytes]) -> None:
        """Send pieces that arrive one by one: the loop runs between them."""
        for piece in slices:
            self.send(piece)
            await asyncio.sleep(0)


Script = Callable[[Received, Peer], Awaitable[None]]


class _Connection(asyncio.Protocol):
    def __init__(self, engine: "FakeEngine") -> None:
        self._engine = engine
        self._buffer = b""
        self._playing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = Peer(transport)  # type: ignore[arg-type]
        self._transport = transport
        self._engine.opened += 1
        self._engine.open.add(self)
        if not self._engine.listening:
            self.drop()  # accepted in the moment in which the engine stopped

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._peer.gone.set()
        self._engine.open.discard(self)
        if not self._engine.open:
            self._engine.all_closed.set()

    def drop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
        self._transport.abort()  # type: ignore[attr-defined]

    def _next(self) -> None:
        if self._playing is not None or (request := self._take()) is None:
            return
        self._engine.all_closed.clear()
        script = self._engine.script_for(request)
        self._playing = asyncio.get_running_loop().create_task(self._play(script, request))

    def _take(self) -> Received | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        request = Received(self._buffer[: end + 2], b"")
        length = int(request.fields.get("content-length", "0"))
        if len(self._buffer) < end + 4 + length:
            return None
        request.body = self._buffer[end + 4 : end + 4 + length]
        self._buffer = self._buffer[end + 4 + length :]
        return request

    async def _play(self, script: Script, request: Received) -> None:
        try:
            await script(request, self._peer)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._engine.faults.append(error)
        self._playing = None
        if not self._peer.gone.is_set():
            self._next()


class FakeEngine:
    """Serves on a free port of loopback. ``scripts`` are played in order, then ``default`` for ever."""

    def __init__(self, default: Script | None = None) -> None:
        self.default: Script = default or answers_json(b'{"ok":true}')
        self.scripts: list[Script] = []
        self.requests: list[Received] = []
        self.opened = 0
        self.open: set[_Connection] = set()
        self.all_closed = asyncio.Event()
        self.all_closed.set()
        self.faults: list[Exception] = []
        self.health = "200 OK"
        self.port = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def script_for(self, request: Received) -> Script:
        if request.path == "/health":  # asked by the router on its own account: no part of what is played
            return answers(http(self.health, b""))
        self.requests.append(request)
        return self.scripts.pop(0) if self.scripts else self.default

    @property
    def listening(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.port = self.port or free_ports(1)  # one that nobody else gets while nothing listens
        self._server = await loop.create_server(lambda: _Connection(self), HOST, self.port)

    async def stop(self) -> None:
        """Stop as a killed process does: nothing listens, every connection is gone."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.open):
            connection.drop()
        await self.all_closed.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if error is None and self.faults:
            raise self.faults[0]


def http(status: str, body: bytes, content_type: str = "application/json", fields: str = "") -> bytes:
    """Return a whole answer with a length."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n{fields}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


LAST_CHUNK = b"0\r\n\r\n"


def answers(raw: bytes) -> Script:
    """Send bytes, whole."""

    async def script(request: Received, peer: Peer) -> None:
        peer.send(raw)

    return script


def answers_json(body: bytes, status: str = "200 OK") -> Script:
    return answers(http(status, body))


def streams(events: Sequence[bytes]) -> Script:
    """Send a whole event stream, one chunk an event, one loop turn a chunk."""

    async def script(request: Received, peer: Peer) -> None:
        await peer.send_slices([STREAM_HEAD, *map(chunk, events), LAST_CHUNK])

    return script


def hangs(first: bytes = b"") -> Script:
    """Send something, then nothing, until the router goes away."""

    async def script(request: Received, peer: Peer) -> None:
        if first:
            peer.send(first)
        await peer.gone.wait()

    return script


def resets(first: bytes = b"") -> Script:
    """Send something and reset the connection after it has gone out."""

    async def script(request: Received, peer: Peer) -> None:
        if first:
            peer.send(first)
            await asyncio.sleep(0.02)
        peer.reset()

    return script


def closes(raw: bytes = b"") -> Script:
    """Send something and close."""

    async def script(request: Received, peer: Peer) -> None:
        if raw:
            peer.send(raw)
        peer.close()

    return script


def sliced(raw: bytes, random: Random, most: int = 40) -> list[bytes]:
    """Cut bytes at random places, also inside characters and lines."""
    pieces = []
    position = 0
    while position < len(raw):
        size = random.randint(1, most)
        pieces.append(raw[position : position + size])
        position += size
    return pieces


@asynccontextmanager
async def serving(engines: Sequence[FakeEngine]) -> AsyncIterator[None]:
    """Run engines for the length of a block."""
    async with AsyncExitStack() as running:
        for engine in engines:
            await running.enter_async_context(engine)
        yield
