"""Small requests of the worker's own (metrics, models, configuration, snapshots) over the same strict connections."""

import asyncio
from collections.abc import Mapping

import msgspec

from router.proxy.failure import Failure, FailureKind
from router.proxy.pool import CLOSED_AT_ONCE, Pool
from router.proxy.upstream import UpstreamConnection
from router.proxy.wire.head import AnswerHead

MAX_ANSWER_BYTES = 64 * 1024 * 1024


class FetchFailed(OSError):
    """A request of our own that got no answer; the message says why, ``kind`` where it failed, None for its limit."""

    def __init__(self, message: str, kind: FailureKind | None = None) -> None:
        super().__init__(message)
        self.kind = kind


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask; ``limit_s`` is for everything from the first byte out to the last one in."""

    method: bytes = b"GET"
    path: bytes
    fields: Mapping[bytes, bytes] = {}
    body: bytes = b""
    limit_s: float


class Fetched(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    fields: Mapping[bytes, bytes]
    body: bytes


async def fetch(pool: Pool, request: FetchRequest) -> Fetched:
    """Ask and wait for the whole answer.

    :raises FetchFailed: when there was none in time, or not one that can be read.
    """
    try:
        async with asyncio.timeout(request.limit_s):
            return await _fetch(pool, request)
    except TimeoutError:
        raise FetchFailed(f"no answer in {request.limit_s} s") from None


async def _fetch(pool: Pool, request: FetchRequest) -> Fetched:
    connection = pool.take()
    if connection is not None:
        listener = _Listener()
        answer = await _ask(pool, connection, listener, request)
        if not listener.stale:
            return _checked(answer)
    return _checked(await _ask(pool, await _connected(pool), _Listener(), request))


def _checked(answer: "Fetched | Failure") -> Fetched:
    if isinstance(answer, Failure):
        raise FetchFailed(f"{answer.kind.value}: {answer.detail}", answer.kind)
    return answer


async def _connected(pool: Pool) -> UpstreamConnection:
    ready: asyncio.Future[UpstreamConnection | Failure] = asyncio.get_running_loop().create_future()
    task = pool.connect(ready.set_result, ready.set_result)
    try:
        outcome = await ready
    except asyncio.CancelledError:
        task.cancel()
        raise
    if isinstance(outcome, Failure):
        raise FetchFailed(f"{outcome.kind.value}: {outcome.detail}", outcome.kind)
    return outcome


async def _ask(
    pool: Pool, connection: UpstreamConnection, listener: "_Listener", request: FetchRequest
) -> Fetched | Failure:
    if connection.closed:  # since it was made
        return Failure(FailureKind.CONNECT, CLOSED_AT_ONCE)
    connection.begin(listener, _encode(pool, request), request.body)
    try:
        return await listener.done
    except asyncio.CancelledError:
        connection.abort()
        raise


def _encode(pool: Pool, request: FetchRequest) -> bytes:
    lines = [
        b"%b %b%b HTTP/1.1\r\nHost: %b\r\n" % (request.method, pool.address.prefix, request.path, pool.host_header)
    ]
    lines += [b"%b: %b\r\n" % field for field in request.fields.items()]
    if request.body:
        lines.append(b"Content-Length: %d\r\n" % len(request.body))
    lines.append(b"\r\n")
    return b"".join(lines)


class _Listener:
    """Gathers one answer."""

    def __init__(self) -> None:
        self.done: asyncio.Future[Fetched | Failure] = asyncio.get_running_loop().create_future()
        self.stale = False
        self._body = bytearray()

    def on_answer(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        self._body += payload
        if len(self._body) > MAX_ANSWER_BYTES:
            raise RuntimeError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
        if complete and not self.done.done():
            self.done.set_result(Fetched(head.status, head.fields, bytes(self._body)))

    def on_failure(self, failure: Failure, *, unanswered: bool) -> None:
        self.stale = unanswered
        if not self.done.done():
            self.done.set_result(failure)
