"""The engine's HTTP/1.1 server side: one protocol object a connection, one reply a request.

What lives here: framing, keep-alive, pipelining in order, disconnects. What does not: routes and bodies. It behaves as
the server under vLLM does: headers of a stream go out before its first chunk, an idle connection is closed after five
seconds, and a client that closes (also only its sending half) ends its request at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus

import httptools

IDLE_TIMEOUT_S = 5.0
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_PIPELINED = 16

JSON = "application/json"
_EVENT_STREAM = "text/event-stream; charset=utf-8"


class HttpRequest:
    """One complete request; header names are lower-case."""

    __slots__ = ("body", "headers", "keep_alive", "method", "path", "version")

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.version = "1.1"
        self.headers: dict[str, str] = {}
        self.body = b""
        self.keep_alive = True


Handler = Callable[[HttpRequest, "Reply"], None]


class Reply:
    """The answer to one request: either :meth:`send` once, or :meth:`start_stream`, :meth:`write`, :meth:`end`.

    After the client has gone every method does nothing, and ``on_gone`` was called once.
    """

    __slots__ = ("_connection", "_request", "gone", "on_gone")

    def __init__(self, connection: "Connection", request: HttpRequest) -> None:
        self._connection = connection
        self._request = request
        self.gone = False
        self.on_gone: Callable[[], None] | None = None

    def send(self, status: int, body: bytes = b"", content_type: str | None = JSON, extra: str = "") -> None:
        """Send a whole answer; ``extra`` holds header lines, each ending in CRLF."""
        kind = f"content-type: {content_type}\r\n" if content_type else ""
        head = f"{extra}content-length: {len(body)}\r\n{kind}vary: Origin\r\n{self._close_line}\r\n"
        self._put(_status_line(status) + self._connection.date_lines + head.encode() + body)
        self._done()

    def start_stream(self) -> None:
        """Send the headers of a stream of events."""
        chunked = "transfer-encoding: chunked\r\n" if self._chunked else ""
        head = f"content-type: {_EVENT_STREAM}\r\nvary: Origin\r\n{self._close_line}{chunked}\r\n"
        self._put(_status_line(200) + self._connection.date_lines + head.encode())

    def frame(self, payload: bytes) -> bytes:
        """Return ``payload`` as one chunk, ready for :meth:`write`."""
        return b"%x\r\n%b\r\n" % (len(payload), payload) if self._chunked else payload

    def write(self, framed: bytes) -> None:
        """Send chunks made by :meth:`frame`."""
        self._put(framed)

    def end(self) -> None:
        """End a stream."""
        if self._chunked:
            self._put(b"0\r\n\r\n")
        self._done()

    def client_gone(self) -> None:
        """Tell whoever answers that nobody listens any more."""
        self.gone = True
        if self.on_gone is not None:
            self.on_gone()

    @property
    def _chunked(self) -> bool:
        return self._request.version == "1.1"

    @property
    def _keeps_alive(self) -> bool:
        return self._request.keep_alive and self._chunked

    @property
    def _close_line(self) -> str:
        return "" if self._keeps_alive else "connection: close\r\n"

    def _put(self, data: bytes) -> None:
        if not self.gone:
            self._connection.put(data)

    def _done(self) -> None:
        if not self.gone:
            self._connection.answered(keep_alive=self._keeps_alive)


class DateLines:
    """The ``date`` and ``server`` header lines, rendered once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._lines = b""

    def at(self, unix_s: float) -> bytes:
        """Return the lines for a time in seconds since the epoch."""
        if int(unix_s) != self._second:
            self._second = int(unix_s)
            self._lines = f"date: {formatdate(unix_s, usegmt=True)}\r\nserver: uvicorn\r\n".encode()
        return self._lines


class Connection(asyncio.Protocol):
    """One client connection: parses requests, answers them in order, notices when the client leaves."""

    def __init__(
        self,
        handler: Handler,
        unix_s: Callable[[], float],
        dates: DateLines,
        members: set["Connection"],
        is_listening: Callable[[], bool],
    ) -> None:
        self._handler = handler
        self._unix_s = unix_s
        self._dates = dates
        self._members = members
        self._is_listening = is_listening
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = HttpRequest()
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._waiting: deque[HttpRequest] = deque()
        self._current: Reply | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closing = False

    # Transport callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._members.add(self)
        if self._is_listening():
            self._start_idle_timer()
        else:
            self.close()  # accepted in the moment in which the server stopped

    def data_received(self, data: bytes) -> None:
        self._stop_idle_timer()
        if self._closing:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, b"Unsupported upgrade request.")
        except httptools.HttpParserError:
            self._refuse(400, b"Invalid HTTP request received.")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_idle_timer()
        self._members.discard(self)
        self._waiting.clear()
        if self._current is not None:
            self._current.client_gone()
            self._current = None

    # Parser callbacks.

    def on_message_begin(self) -> None:
        self._incoming = HttpRequest()
        self._parts = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._incoming.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._incoming.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        request = self._incoming
        request.method = self._parser.get_method().decode("latin-1")
        request.version = self._parser.get_http_version()
        request.keep_alive = self._parser.should_keep_alive()
        request.path = request.path.partition("?")[0]
        if request.headers.get("expect", "").lower() == "100-continue":
            self.put(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse(413, b"Request body too large.")
            return
        self._incoming.body = b"".join(self._parts)
        self._parts = []
        self._waiting.append(self._incoming)
        if self._current is None:
            self._next()
        elif len(self._waiting) >= MAX_PIPELINED:
            self._transport.pause_reading()

    # For Reply and the server.

    @property
    def date_lines(self) -> bytes:
        return self._dates.at(self._unix_s())

    def put(self, data: bytes) -> None:
        """Hand bytes to the transport."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def answered(self, *, keep_alive: bool) -> None:
        """End the current request: serve the next, wait for one, or close."""
        self._current = None
        if self._closing or not keep_alive:
            self.close()
        elif self._waiting:
            self._loop.call_soon(self._next)
        else:
            self._start_idle_timer()

    def close(self) -> None:
        """Close after what was written has gone out."""
        self._closing = True
        self._transport.close()

    def close_when_idle(self) -> None:
        """Close now, or after the current answer."""
        self._closing = True
        if self._current is None:
            self._transport.close()

    def _next(self) -> None:
        if self._current is not None or not self._waiting or self._transport.is_closing():
            return
        request = self._waiting.popleft()
        self._transport.resume_reading()
        self._current = Reply(self, request)
        self._handler(request, self._current)

    def _refuse(self, status: int, reason: bytes) -> None:
        kind = f"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: {len(reason)}\r\n\r\n"
        self.put(_status_line(status) + kind.encode() + reason)
        self.close()

    def _start_idle_timer(self) -> None:
        self._idle_timer = self._loop.call_later(IDLE_TIMEOUT_S, self.close)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
