"""A light HTTP/1.1 client: pooled keep-alive connections, one exchange at a time on each.

A failure before any byte on a connection that was used before is tried once more on a fresh one, because the server
may have closed it while it was idle. Nothing else is retried: a replay shows what a client would see.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httptools

from router.replay.errors import ExchangeError, TargetError
from router.replay.exchange import Exchange

CONNECT_TIMEOUT_S = 10.0
CONTINUE = 100
STALE = "stale_connection"
"""The kind of a failure before any byte on a connection that was used before."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send: parsed from an address such as ``http://127.0.0.1:8080``."""

    host: str
    port: int
    secure: bool
    base: str

    @classmethod
    def parse(cls, url: str) -> "Target":
        """Read an address; a path in it comes before the API's paths.

        :raises TargetError: when it is no HTTP address.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise TargetError(f"{url!r} is no address: {error}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise TargetError(f"{url!r} is no HTTP address")
        secure = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/").removesuffix("/v1"))

    @property
    def authority(self) -> str:
        return f"{self.host}:{self.port}"


class HttpClient:
    """Sends requests to one target."""

    def __init__(self, target: Target, headers: Mapping[str, str]) -> None:
        self._target = target
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._fixed = f"host: {target.authority}\r\ncontent-type: application/json\r\n{extra}".encode()
        self._idle: deque[ClientConnection] = deque()
        self._open: set[ClientConnection] = set()

    async def post(self, path: str, body: bytes, exchange: Exchange, headers: bytes = b"") -> None:
        """Send a request and wait for the end of its answer; ``headers`` are lines, each ending in CRLF.

        :raises ExchangeError: when it failed, with the kind it is counted under.
        """
        head = f"POST {self._target.base}{path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n".encode()
        await self._send(head + self._fixed + headers + b"\r\n" + body, exchange)

    async def get(self, path: str, exchange: Exchange) -> None:
        """Fetch something small; see :meth:`post`."""
        await self._send(f"GET {self._target.base}{path} HTTP/1.1\r\n".encode() + self._fixed + b"\r\n", exchange)

    async def _send(self, data: bytes, exchange: Exchange) -> None:
        connection = self._take_idle()
        if connection is not None:
            try:
                await self._exchange(connection, data, exchange)
            except ExchangeError as error:
                if error.kind != STALE:
                    raise
                exchange.rearm()
            else:
                return
        await self._exchange(await self._connect(), data, exchange)

    def close(self) -> None:
        """Close every connection at once; exchanges under way fail."""
        for connection in list(self._open):
            connection.abort()

    async def _exchange(self, connection: "ClientConnection", data: bytes, exchange: Exchange) -> None:
        connection.send(data, exchange)
        try:
            await exchange.finished
        finally:
            if connection.reusable:
                self._idle.append(connection)
            else:
                connection.abort()

    def _take_idle(self) -> "ClientConnection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    async def _connect(self) -> "ClientConnection":
        loop = asyncio.get_running_loop()
        target = self._target
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: ClientConnection(self._open), target.host, target.port, ssl=target.secure or None
                )
        except TimeoutError:
            raise ExchangeError("connect_timeout") from None
        except OSError as error:
            raise ExchangeError("connect", str(error)) from error
        return connection


class ClientConnection(asyncio.Protocol):
    """One connection; :attr:`reusable` between exchanges while both sides keep it open."""

    def __init__(self, members: set["ClientConnection"]) -> None:
        self._members = members
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._served = 0
        self._keep_alive = False
        self._lost = False

    @property
    def reusable(self) -> bool:
        return self._exchange is None and self._keep_alive and not self._lost and not self._transport.is_closing()

    def send(self, data: bytes, exchange: Exchange) -> None:
        """Begin an exchange; its end is told through ``exchange``."""
        self._exchange = exchange
        self._keep_alive = False
        if self._lost:
            self.connection_lost(None)
        else:
            self._transport.write(data)

    def abort(self) -> None:
        """Close without waiting for anything."""
        if not self._lost:
            self._transport.abort()

    # Transport callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._members.add(self)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            self.abort()
            return
        exchange.began = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end("bad_response", str(error))
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._members.discard(self)
        if self._exchange is not None:
            stale = self._served > 0 and not self._exchange.began
            self._end(STALE if stale else "disconnected", str(exc or ""))

    # Parser callbacks.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._exchange is not None:
            self._exchange.header(name.lower(), value)

    def on_headers_complete(self) -> None:
        if self._exchange is not None:
            self._exchange.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if self._exchange is not None:
            self._exchange.data(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() == CONTINUE:
            return
        self._served += 1
        self._keep_alive = self._parser.should_keep_alive()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.complete()

    def _end(self, kind: str, detail: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.fail(kind, detail)
