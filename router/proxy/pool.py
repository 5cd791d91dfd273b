"""The connections to one engine: idle ones are reused, newest first; new ones are made with a time limit."""

import asyncio
import errno
import ssl
from collections import deque
from collections.abc import Callable

from router.proxy.address import Address
from router.proxy.failure import Failure, FailureKind
from router.proxy.limits import Limits
from router.proxy.upstream import ConnectionOwner, UpstreamConnection
from router.proxy.wire.answer_heads import AnswerHeads

CLOSED_AT_ONCE = "the engine closed the connection as soon as it was made"

OnConnected = Callable[[UpstreamConnection], None]
OnFailed = Callable[[Failure], None]


_OUR_LACK = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""Errors of a connection that was never tried: no descriptor, no memory, no local port."""


class Pool(ConnectionOwner):
    """Connections to one address. ``close`` ends the idle ones; busy ones end with their answers."""

    def __init__(self, address: Address, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.address = address
        self.host_header = address.host_header
        self._limits = limits
        self._loop = loop
        self._ssl = ssl.create_default_context() if address.tls else None
        self._idle: deque[UpstreamConnection] = deque()
        self._open: set[UpstreamConnection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._closed = False
        self._heads = AnswerHeads()

    @property
    def open_connections(self) -> int:
        """Connections that exist, idle or busy."""
        return len(self._open)

    @property
    def idle_connections(self) -> int:
        """Connections that wait for a request."""
        return len(self._idle)

    def take(self) -> UpstreamConnection | None:
        """Return an idle connection, or None."""
        oldest_s = self._loop.time() - self._limits.upstream_idle_s
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                if connection.idle_since_s >= oldest_s:
                    return connection
                connection.abort()
        return None

    def connect(self, on_connected: OnConnected, on_failed: OnFailed) -> asyncio.Task[None]:
        """Make a new connection in the background; exactly one of the two is called unless the task is cancelled."""
        task = self._loop.create_task(self._connect(on_connected, on_failed))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return task

    def on_idle(self, connection: UpstreamConnection) -> None:
        """Keep a connection for the next request."""
        if self._closed or len(self._idle) >= self._limits.max_idle_upstream:
            connection.abort()
            return
        connection.idle_since_s = self._loop.time()
        self._idle.append(connection)

    def on_closed(self, connection: UpstreamConnection) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def sweep(self, now_s: float) -> None:
        """Close what has been idle for too long: engines do the same, a little later."""
        oldest_s = now_s - self._limits.upstream_idle_s
        while self._idle and self._idle[0].idle_since_s < oldest_s:
            self._idle.popleft().abort()

    def close(self) -> None:
        """Close idle connections, give up on those being made, and keep none from now on."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()
        for task in list(self._connecting):
            task.cancel()

    async def _connect(self, on_connected: OnConnected, on_failed: OnFailed) -> None:
        address = self.address
        try:
            async with asyncio.timeout(self._limits.upstream_connect_s):
                _, connection = await self._loop.create_connection(
                    lambda: UpstreamConnection(self, self._limits.max_head_bytes, self._heads),
                    address.host,
                    address.port,
                    ssl=self._ssl,
                )
        except TimeoutError:
            on_failed(Failure(FailureKind.CONNECT_TIMEOUT, f"no connection in {self._limits.upstream_connect_s} s"))
        except OSError as error:
            kind = FailureKind.EXHAUSTED if error.errno in _OUR_LACK else FailureKind.CONNECT
            on_failed(Failure(kind, str(error)))
        else:
            if connection.closed:  # lost before this task had its turn: nobody would be told again
                on_failed(Failure(FailureKind.CONNECT, CLOSED_AT_ONCE))
                return
            self._open.add(connection)
            on_connected(connection)
