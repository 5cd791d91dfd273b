"""A webhook receiver that answers as told: succeeds, fails, hangs, is gone; and remembers what it got."""

import asyncio
from dataclasses import dataclass, field
from types import TracebackType

from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Serves HTTP on a port of its own. ``answers`` are used up one a request; the last one stays.

    An answer of None hangs: the request is read and never answered.
    """

    answers: list[int | None] = field(default_factory=lambda: [200])
    body: bytes = b"{}"
    headers: tuple[str, ...] = ()
    got: list[Got] = field(default_factory=list)

    async def __aenter__(self) -> "Receiver":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"

    async def arrivals(self, count: int) -> list[Got]:
        """Wait until ``count`` requests have arrived."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.got) >= count)
        return self.got

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the sender was killed, or gave up
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in fields)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        async with self._arrived:
            self.got.append(Got(line.split()[1], headers, body))
            self._arrived.notify_all()
        if status is None:
            await reader.read()  # until the other side gives up
            return
        extra = "".join(f"{text}\r\n" for text in self.headers)
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(self.body)}\r\n{extra}Connection: close\r\n\r\n"
        writer.write(head.encode() + self.body)
        await writer.drain()
