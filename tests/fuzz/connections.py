"""A client connection under any bytes, pauses and turns: nothing is served twice, early, or read in two ways."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import h11

from router.proxy.client import ClientConnection
from router.proxy.deadlines import Deadlines
from router.proxy.errors import BadRequest
from router.proxy.limits import Limits
from router.proxy.service import Service
from router.proxy.wire.encode import CONTINUE, Outgoing, OwnAnswer, encode_request_head
from router.proxy.wire.head import RequestHead
from tests.fuzz.byte_reader import ByteReader
from tests.router.proxy.wire.test_request_reader import read_strictly

LIMITS = Limits(max_head_bytes=4096, max_body_bytes=1000, max_buffered_bytes=3000, max_pipelined_bytes=500)
_EVENTS = ("feed", "feed", "feed", "turn", "turn", "finish", "finish", "pause", "resume", "sweep", "break", "stop")


class _Loop:
    """As much of an event loop as a client connection has use for."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: list[Callable[[], object]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class _Transport:
    """What the router writes, until it closes."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.data += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def get_extra_info(self, name: str) -> None:
        return None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass


class _Worker:
    """Answers GET /livez itself, refuses DELETE, and serves the rest when it is told to."""

    def __init__(self) -> None:
        self.loop: Any = _Loop()
        self.limits = LIMITS
        self.deadlines = Deadlines()
        self.stopping = False
        self.held = 0
        self.requests: list[tuple[bytes, bytes, bytes | None]] = []
        """Method, target and body; None where the body was of no interest."""
        self.serving: ClientConnection | None = None

    def lets_in(self) -> bool:
        return True

    def opened(self, client: ClientConnection) -> None:
        pass

    def closed(self, client: ClientConnection) -> None:
        self.serving = None

    def reserve(self, fresh_bytes: int, whole_bytes: int) -> bool:
        if self.held + fresh_bytes > self.limits.max_buffered_bytes:
            return False
        self.held += fresh_bytes
        return True

    def unreserve(self, held_bytes: int) -> None:
        self.held -= held_bytes

    def local_answer(self, head: RequestHead) -> OwnAnswer | None:
        if head.method != b"GET":
            return None
        self.requests.append((head.method, head.target, None))
        return OwnAnswer(200, b"text/plain", b"ok\n")

    def serve(self, client: ClientConnection, head: RequestHead, body: bytes) -> None:
        assert self.serving is None
        self.requests.append((head.method, head.target, body))
        if head.method == b"DELETE":
            raise BadRequest("no")
        _check_passed_on(head, body)
        self.serving = client

    def finish(self) -> None:
        """Answer what is being served."""
        client, self.serving = self.serving, None
        if client is not None:
            keeps_alive = client.keeps_alive
            answer = OwnAnswer(200, b"text/plain", b"ok\n")
            client.write(answer.encode(close=not keeps_alive, without_body=self.requests[-1][0] == b"HEAD"))
            client.done(reusable=keeps_alive)


def _check_passed_on(head: RequestHead, body: bytes) -> None:
    """What goes to the engine is that one request, to a strict parser as well."""
    ours = Outgoing(target=head.target, host=b"engine", request_id=b"id", body_bytes=len(body))
    assert read_strictly(encode_request_head(head, ours) + body) == [(head.method, head.target, body)]


def connections(data: bytes) -> None:
    """See the module."""
    source, worker, transport = ByteReader(data), _Worker(), _Transport()
    client = ClientConnection(cast(Service, worker))
    client.connection_made(cast(asyncio.Transport, transport))
    fed, is_paused = b"", False
    while source.left and not transport.closed:
        before = len(worker.requests)
        match source.choice(_EVENTS):
            case "feed":
                piece = source.take(1 + source.below(256) * (1 + source.below(4)))
                fed += piece
                client.data_received(piece)
                assert len(worker.requests) <= before + 1
            case "turn":
                worker.loop.turn()
                assert len(worker.requests) <= before + 1
            case "finish":
                worker.finish()
            case "pause" if not is_paused:
                is_paused = True
                client.pause_writing()
            case "resume" if is_paused:
                is_paused = False
                client.resume_writing()
            case "sweep":
                worker.loop.now_s += 1 + source.below(256)
                worker.deadlines.sweep(worker.loop.now_s)
            case "break" if worker.serving is not None:
                worker.serving = None
                client.break_off()
            case "stop":
                worker.stopping = True
                client.stop()
        assert worker.held <= LIMITS.max_buffered_bytes
        assert client._reader.held_bytes <= LIMITS.max_buffered_bytes + LIMITS.max_pipelined_bytes + 1024
    client.connection_lost(None)
    worker.loop.turn()
    assert worker.held == 0
    assert len(worker.deadlines) == 0
    strictly = read_strictly(fed)
    assert len(strictly) >= len(worker.requests)
    for (method, target, body), seen in zip(worker.requests, strictly, strict=False):
        assert seen == (method, target, seen[2] if body is None else body)
    last = b"POST" if client._reader.head is None else client._reader.head.method
    _check_answers(transport.data, [*(method for method, _, _ in worker.requests), last])


def _check_answers(raw: bytes, methods: list[bytes]) -> None:
    """Each request that was served has one whole answer at most; one more tells of bytes that are no request."""
    for method in methods:
        if raw in (b"", CONTINUE):
            return
        wire = h11.Connection(h11.CLIENT)
        wire.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        wire.send(h11.EndOfMessage())
        wire.receive_data(raw)
        while not isinstance(event := wire.next_event(), h11.EndOfMessage):
            assert event is not h11.NEED_DATA
        raw = bytes(wire.trailing_data[0])
    assert raw in (b"", CONTINUE)
