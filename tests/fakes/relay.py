"""A relay in front of a TCP server: it can hold everything back, and cut all connections, as networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_AT_ONCE = 1 << 16


class Relay:
    """Listens on ``port`` of loopback while its block runs."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
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
        self._close()

    def heal(self) -> None:
        """Work again."""
        self._refusing = False
        self._flowing.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Relay"]:
        """Relay until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(_AT_ONCE):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
