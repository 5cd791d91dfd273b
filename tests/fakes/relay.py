"""A relay in front of TCP servers: it goes to the first that answers, and can hold everything back or cut it, as
networks do."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Self

from tests.patience import PATIENCE_S

_AT_ONCE = 1 << 16


class Relay:
    """Listens on ``port`` of loopback while its block runs."""

    def __init__(self, *targets: tuple[str, int]) -> None:
        self._targets = targets
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusing = False
        self.port = 0

    def hold(self) -> None:
        """Pass nothing on, and keep every connection: a server that hangs."""
        self._flowing.clear()

    def cut(self) -> None:
        """Close every connection and refuse new ones: a server that is gone."""
        self._refusing = True
        self.close_connections()

    def heal(self) -> None:
        """Work again."""
        self._refusing = False
        self._flowing.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        """Relay until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.close_connections()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def close_connections(self) -> None:
        """Close every connection; whoever comes back is let in."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            there, back = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        for passing in (self._pass_up(reader, back), self._pass_on(there, writer)):
            task = asyncio.create_task(passing)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for target in self._targets:
            with suppress(OSError):
                return await asyncio.open_connection(*target)
        raise ConnectionRefusedError("none of the servers answers")

    async def _pass_up(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._pass_on(source, sink)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(_AT_ONCE):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


class RelayInThread:
    """A relay that synchronous tests can use."""

    def __init__(self, relay: Relay, loop: asyncio.AbstractEventLoop) -> None:
        self._relay = relay
        self._loop = loop
        self.port = relay.port

    def close_connections(self) -> None:
        """Have everybody connect anew."""
        self._loop.call_soon_threadsafe(self._relay.close_connections)


@contextmanager
def relaying(*ports: int) -> Iterator[RelayInThread]:
    """Relay, in a thread, to the first of some ports of loopback that answers."""
    loop = asyncio.new_event_loop()
    relay = Relay(*(("127.0.0.1", port) for port in ports))
    ready, done = threading.Event(), asyncio.Event()

    async def run() -> None:
        async with relay.listening():
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name="relay")
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield RelayInThread(relay, loop)
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(PATIENCE_S)
        loop.close()
