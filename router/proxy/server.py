"""The listening side: accepts clients, hands their requests to exchanges, and drains when it stops."""

import asyncio
import socket
import time
from collections.abc import Sequence
from typing import Protocol

from router.core.request import DEFAULT_WORKLOAD
from router.proxy.client import ClientConnection
from router.proxy.deadlines import Deadlines
from router.proxy.errors import Unavailable
from router.proxy.exchange import Exchange
from router.proxy.limits import Limits
from router.proxy.local import MODELS_PATH, local_answer
from router.proxy.places import Places
from router.proxy.plane import Plane
from router.proxy.preload.order import PRELOAD_PATH, intake_of_order
from router.proxy.process import most_open_files
from router.proxy.room import Room
from router.proxy.service import Service
from router.proxy.wire.encode import OwnAnswer
from router.proxy.wire.head import RequestHead

BACKLOG = 4096
SWEEP_S = 0.25
ABORT_EVERY_S = 0.01
"""How often clients are looked for that are still there after the drain."""
KEPT_FILES = 64
"""Descriptors for everything that is no connection of a request."""
ROOM_SHARE = 64
"""Of the request bytes that may be held, one part in so many is freed at a time."""


def _most_connections() -> int:
    """Return how many connections there may be before a client has to make way; a sixteenth is left for engines."""
    return most_open_files() * 15 // 16 - KEPT_FILES


class Listening(Protocol):
    """What event loops return for a server: sockets in a tuple (asyncio) or in a list (uvloop)."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...


class ProxyServer(Service):
    """Serves one plane on one listening socket."""

    def __init__(self, plane: Plane, most_connections: int | None = None) -> None:
        """``most_connections``: with clients and engines together; by default what this process may open, nearly."""
        self._plane = plane
        self._places = Places(_most_connections() if most_connections is None else most_connections)
        self._room = Room()
        self._clients: set[ClientConnection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._no_clients = asyncio.Event()
        self._no_clients.set()

    # -- what client connections need --

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that everything runs in."""
        return self._plane.loop

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._plane.limits

    @property
    def deadlines(self) -> Deadlines:
        """Everything that waits."""
        return self._plane.deadlines

    @property
    def stopping(self) -> bool:
        """Whether connections are closed after their current answer."""
        return self._plane.stopping

    def lets_in(self) -> bool:
        """Tell whether there is a place for another client, or one can be made; count it where not."""
        plane = self._plane
        engines = sum(link.pool.open_connections for link in plane.links.values())
        if plane.open_clients + engines < self._places.most:
            return True
        if self._places.make_room(self._clients, self.loop.time()):
            plane.clients_that_made_way += 1
            return True
        plane.clients_refused += 1
        return False

    def local_answer(self, head: RequestHead) -> OwnAnswer | None:
        """Answer a path of the worker's own.

        :raises Unauthorized: for the list of models, where a key is required.
        """
        table = self._plane.table
        if table is not None and head.path == MODELS_PATH:
            table.access.identify(head.fields, time.time())
        return local_answer(self._plane, head)

    def serve(self, client: ClientConnection, head: RequestHead, body: bytes) -> None:
        """Begin an exchange for a whole request.

        :raises ProxyError: when the request is refused at once.
        """
        plane = self._plane
        table = plane.table
        if table is None:
            raise Unavailable("no configuration is in force yet", retry_after_s=1)
        request_id = plane.desk.request_id(head)
        if head.path == PRELOAD_PATH and head.method == b"POST":
            head, intake = intake_of_order(plane, head, body, request_id)
            policy = table.policies[DEFAULT_WORKLOAD]
        else:
            caller = table.access.identify(head.fields, time.time())
            intake = plane.desk.intake(head, body, request_id, table, caller)
            policy = table.policies[intake.request.workload]
            plane.texts.offer(head.path, intake.chain, intake.body, caller.tenant)
        exchange = Exchange(plane, client, head, intake)
        client.attach(exchange)
        try:
            exchange.start(policy)
        except Exception:
            exchange.crash()

    def opened(self, client: ClientConnection) -> None:
        """A client connected."""
        self._clients.add(client)
        self._plane.open_clients += 1
        self._no_clients.clear()

    def closed(self, client: ClientConnection) -> None:
        """A client is gone."""
        self._clients.discard(client)
        self._plane.open_clients -= 1
        if not self._clients:
            self._no_clients.set()

    def reserve(self, fresh_bytes: int, whole_bytes: int) -> bool:
        """Ask for room to hold so much more of a request of which so much has come; False when there is none."""
        plane = self._plane
        most = plane.limits.max_buffered_bytes
        if plane.held_bytes + fresh_bytes > most:
            wanted = max(fresh_bytes, most // ROOM_SHARE)
            has_room = self._room.make(self._clients, whole_bytes, wanted, self.loop.time())
            if not has_room or plane.held_bytes + fresh_bytes > most:
                return False
        plane.held_bytes += fresh_bytes
        return True

    def unreserve(self, held_bytes: int) -> None:
        """Give room back."""
        self._plane.held_bytes -= held_bytes

    # -- life --

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """Begin to accept clients; return the address that is listened on.

        :raises OSError: when it cannot be listened on.
        """
        server = await self.loop.create_server(
            lambda: ClientConnection(self), host, port, backlog=BACKLOG, reuse_port=reuse_port or None
        )
        self._server = server
        self._sweeper = self.loop.create_task(self._sweep())
        return _address(server)

    async def stop(self) -> None:
        """Accept nobody any more, let answers finish for a while, then close everything."""
        self._plane.stopping = True
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.stop()
        try:
            async with asyncio.timeout(self.limits.drain_s):
                await self._no_clients.wait()
        except TimeoutError:
            while self._clients:  # also those that were accepted a moment ago
                for client in list(self._clients):
                    client.abort()
                await asyncio.sleep(ABORT_EVERY_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._plane.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self._plane.sweep(self.loop.time())


def _address(server: Listening) -> tuple[str, int]:
    host, port, *_ = server.sockets[0].getsockname()
    return host, port
