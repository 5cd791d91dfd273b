"""The web process, served by a real uvicorn in the test's own event loop."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from controlplane.asgi import application
from tests.patience import PATIENCE_S
from tests.ports import free_ports


class WebProcess:
    """Serves ``controlplane.asgi`` on a port of its own; may be stopped and started again on the same one."""

    def __init__(self) -> None:
        self._port = 0
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Return the address, without a path."""
        return f"http://127.0.0.1:{self._port}"

    def buffered_bytes(self) -> int:
        """Return what connections still have to send: held by this process, not by the kernel."""
        connections = self._server.server_state.connections if self._server else ()
        return sum(one.transport.get_write_buffer_size() for one in connections)

    async def start(self) -> None:
        """Listen and serve."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port = self._port or free_ports(1)
        listener.bind(("127.0.0.1", self._port))
        self._server = _Server(
            uvicorn.Config(
                application, log_level="warning", lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=10
            )
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        await asyncio.wait_for(self._server.ready.wait(), PATIENCE_S)

    async def stop(self) -> None:
        """Close every connection and the listener."""
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        await asyncio.wait_for(self._task, PATIENCE_S)
        self._server = self._task = None


class _Server(uvicorn.Server):
    """A server that says when it listens, and leaves the signals of the test run alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
