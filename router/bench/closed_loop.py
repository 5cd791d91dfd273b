"""A closed loop of clients: each sends its next request when it has its answer, or a while later.

Times are read from the system: an event loop's own clock may be as coarse as a millisecond.
"""

import asyncio
from collections.abc import Iterator
from time import perf_counter

import msgspec

from router.proxy.wire.answer_heads import AnswerHeads
from router.proxy.wire.answer_reader import AnswerReader

MAX_HEAD_BYTES = 32 * 1024


class Seen(msgspec.Struct):
    """What the clients saw. Seconds."""

    latencies_s: list[float] = []
    first_bytes_s: list[float] = []
    gaps_s: list[float] = []
    """Between two pieces of a stream."""
    failures: int = 0


class LoopPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the clients behave; ``think_s`` is the pause between an answer and the next request."""

    port: int
    clients: int
    seconds: float
    think_s: float = 0.0


class _Client(asyncio.Protocol):
    def __init__(self, bodies: Iterator[bytes], plan: LoopPlan, seen: Seen) -> None:
        self._loop = asyncio.get_running_loop()
        self._bodies = bodies
        self._plan = plan
        self._seen = seen
        self._heads = AnswerHeads()
        self._ends_s = perf_counter() + plan.seconds
        self._reader = AnswerReader(MAX_HEAD_BYTES, self._heads)
        self._sent_s = 0.0
        self._piece_s = 0.0
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self.done.set()

    def data_received(self, data: bytes) -> None:
        now_s = perf_counter()
        payload = self._reader.feed(data)
        if payload:
            if self._piece_s:
                self._seen.gaps_s.append(now_s - self._piece_s)
            else:
                self._seen.first_bytes_s.append(now_s - self._sent_s)
            self._piece_s = now_s
        if self._reader.complete:
            head = self._reader.head
            self._seen.failures += head is None or head.status != 200
            self._seen.latencies_s.append(now_s - self._sent_s)
            self._loop.call_later(self._plan.think_s, self._send) if self._plan.think_s else self._send()

    def _send(self) -> None:
        if perf_counter() >= self._ends_s or self._transport.is_closing():
            self._transport.close()
            return
        body = next(self._bodies)
        self._reader = AnswerReader(MAX_HEAD_BYTES, self._heads)
        self._sent_s, self._piece_s = perf_counter(), 0.0
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        self._transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


async def run_loop(plan: LoopPlan, bodies: Iterator[bytes]) -> Seen:
    """Run the clients to the end of their time."""
    loop = asyncio.get_running_loop()
    seen = Seen()
    clients = [_Client(bodies, plan, seen) for _ in range(plan.clients)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", plan.port)  # type: ignore[misc]
    for client in clients:
        await client.done.wait()
    return seen
