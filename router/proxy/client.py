"""One client connection: requests are read, served one after the other in order, and answered.

Life-cycle, as a table::

    state      event                      next       effect
    READING    a whole request            SERVING    local paths are answered at once, the rest becomes an exchange
    READING    malformed, too large, slow LINGERING  one error answer, then nothing more is read as a request
    SERVING    answer done, keep-alive    READING    at once, or when the client has read enough of what was written;
                                                     a request that came meanwhile is served in the loop's next turn
    SERVING    answer done, close         LINGERING
    LINGERING  end of input, time limit   CLOSED
    any        end of input               CLOSED     also a half-closed client: its exchange is cancelled

A client that ends its side while it waits has gone away: nothing is generated for it. One that sends requests without
reading their answers, or many at a time, gets one answer a turn, and none while those before it wait to be read.
"""

import asyncio
from enum import Enum
from typing import Final, cast

import structlog

from router.proxy.client_side import Client
from router.proxy.deadlines import NEVER, Timed
from router.proxy.errors import BadRequest, Overloaded, ProxyError, error_answer
from router.proxy.exchange import Exchange
from router.proxy.routes import ANTHROPIC_PATH
from router.proxy.service import Service
from router.proxy.sockets import reset_on_close, tune
from router.proxy.wire.encode import CONTINUE, OwnAnswer
from router.proxy.wire.faults import RequestFault
from router.proxy.wire.request_reader import ReadState, RequestReader

_log = structlog.get_logger(__name__)


_TOO_MANY = error_answer(Overloaded("too many connections are open", code="too_many_connections"))


class ClientState(Enum):
    """Where a client connection is; see the module's table."""

    READING = "reading"
    SERVING = "serving"
    LINGERING = "lingering"
    CLOSED = "closed"


class _Wait(Enum):
    """What a reading connection waits for."""

    NOTHING = "nothing"
    REQUEST = "request"
    HEAD = "head"
    BODY = "body"


_READING: Final = ClientState.READING
_SERVING: Final = ClientState.SERVING
_LINGERING: Final = ClientState.LINGERING
_CLOSED: Final = ClientState.CLOSED


class ClientConnection(asyncio.Protocol, Client, Timed):
    """See the module's table."""

    def __init__(self, service: Service) -> None:
        self._service = service
        limits = service.limits
        self._reader = RequestReader(limits.max_head_bytes, limits.max_body_bytes)
        self._transport: asyncio.Transport | None = None
        self._state = _READING
        self._wait = _Wait.NOTHING
        self._exchange: Exchange | None = None
        self._is_paused = False
        self._is_answered = False
        """Whether the request that is served has its answer, and what follows it has to wait."""
        self._is_due = False
        """Whether the next turn of the loop goes on."""
        self._overflowed = False
        self._held_bytes = 0
        self.deadline_s = NEVER

    # -- called by asyncio --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        tune(transport)
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._service.limits.write_buffer_bytes)
        self._service.deadlines.add(self)
        is_let_in = self._service.lets_in()
        self._service.opened(self)
        if is_let_in:
            self._await_more()
        else:
            self.write(_TOO_MANY.encode(close=True, without_body=False))
            self._close()

    def data_received(self, data: bytes) -> None:
        """Read on: the current request, or what follows it."""
        if self._state is _READING:
            try:
                self._reader.feed(data)
            except RequestFault as fault:
                self._reject(fault)
            else:
                self._advance()
        elif self._state is _SERVING and not self._overflowed:
            self._reader.feed(data)
            if self._reader.pending_bytes > self._service.limits.max_pipelined_bytes:
                self._overflowed = True
                self._reader.discard_pending()

    def eof_received(self) -> bool:
        """The client will send no more: it has gone away, or it has read its last answer."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._state = _CLOSED
        self._service.deadlines.discard(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.on_client_gone()
        self._unhold()
        self._service.closed(self)

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._is_paused = True
        self.deadline_s = self._service.loop.time() + self._service.limits.client_write_stall_s
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_paused = False
        if self._state is _SERVING:
            self.deadline_s = NEVER
        if self._exchange is not None:
            self._exchange.resume()
        if self._is_answered:
            self._go_on_soon()

    # -- called by the exchange --

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays open after the current answer."""
        head = self._reader.head
        return (
            head is not None
            and head.keep_alive
            and head.minor == 1
            and not self._overflowed
            and not self._service.stopping
        )

    def write(self, data: bytes) -> None:
        """Send answer bytes."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def attach(self, exchange: Exchange) -> None:
        """Tell the connection which exchange serves its current request."""
        self._exchange = exchange

    def refuse(self, error: ProxyError, lines: bytes = b"") -> None:
        """Send an error of our own as the whole answer to a request that was read whole."""
        keep = self.keeps_alive
        head = self._reader.head
        anthropic = head is not None and head.path.startswith(ANTHROPIC_PATH)
        self._answer(error_answer(error, lines, anthropic=anthropic), close=not keep)
        self.done(reusable=keep)

    def done(self, *, reusable: bool) -> None:
        """The exchange is over: go on with the next request, or close after what was written."""
        self._exchange = None
        self._unhold()
        if self._state is not _SERVING:
            return
        if not (reusable and self.keeps_alive):
            self._close()
            return
        self._is_answered = True
        if self._reader.pending_bytes:
            self._go_on_soon()
        else:
            self._go_on()

    def break_off(self) -> None:
        """Reset the connection, so that a cut answer cannot be taken for a whole one."""
        self._exchange = None
        if self._transport is not None:
            reset_on_close(self._transport)
            self._transport.abort()

    # -- called by the worker --

    @property
    def idle_since_s(self) -> float | None:
        """Since when it has asked nothing (monotonic seconds); None while it asks or is answered."""
        if self._state is not _READING or self._wait is not _Wait.REQUEST:
            return None
        return self.deadline_s - self._service.limits.client_idle_s

    @property
    def arriving_bytes(self) -> int:
        """Bytes that are held of a request that is not whole yet; 0 when there is none."""
        return self._held_bytes if self._state is _READING else 0

    def give_up(self) -> None:
        """Refuse the request that is on its way, and hold nothing of it any more."""
        self._reject(RequestFault("out_of_memory", "too many request bytes are held at once", 503))

    def make_way(self) -> None:
        """Close, though the time limit for idle connections is not over."""
        self._close()

    def on_deadline(self, now_s: float) -> None:
        """The current wait took too long."""
        self.deadline_s = NEVER
        if self._state is _READING and self._wait is _Wait.REQUEST:
            self._close()
        elif self._state is _READING:
            what = "head" if self._wait is _Wait.HEAD else "body"
            self._reject(RequestFault("request_timeout", f"the request {what} took too long", 408))
        elif self._transport is not None:
            self._transport.abort()

    def stop(self) -> None:
        """The worker stops: close now if nothing is being served, else after the current answer."""
        if self._state is _READING or self._is_answered:
            self._close()

    def abort(self) -> None:
        """The worker has waited long enough."""
        if self._transport is not None:
            self._transport.abort()

    # -- inside --

    def _go_on_soon(self) -> None:
        """Let others be served first."""
        if not self._is_due:
            self._is_due = True
            self._service.loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._is_due = False
        self._go_on()

    def _go_on(self) -> None:
        """Turn from a request that has its answer to the next, unless the client has yet to read."""
        if not self._is_answered or self._is_paused or self._state is not _SERVING:
            return
        self._is_answered = False
        if not self.keeps_alive:
            self._close()
            return
        self._state = _READING
        try:
            self._reader.next()
        except RequestFault as fault:
            self._reject(fault)
        else:
            self._advance()

    def _advance(self) -> None:
        """Serve the request if it is whole, and else wait."""
        if not self._hold():
            return
        if self._reader.state is ReadState.COMPLETE:
            self._serve()
        else:
            self._await_more()

    def _serve(self) -> None:
        head = self._reader.head
        if head is None:
            raise RuntimeError("a complete request has a head")
        self._state = _SERVING
        self._wait = _Wait.NOTHING
        self.deadline_s = NEVER
        try:
            local = self._service.local_answer(head)
            if local is None:
                self._service.serve(self, head, self._reader.body())
                return
        except ProxyError as error:
            self.refuse(error)
            return
        except Exception:
            _log.exception("request_unreadable")
            self.refuse(ProxyError("an internal error"))
            return
        keep = self.keeps_alive
        self._answer(local, close=not keep)
        self.done(reusable=keep)

    def _await_more(self) -> None:
        reader, limits = self._reader, self._service.limits
        if reader.state is ReadState.BODY:
            wait, limit_s = _Wait.BODY, limits.client_body_s
        elif reader.pending_bytes:
            wait, limit_s = _Wait.HEAD, limits.client_head_s
        else:
            wait, limit_s = _Wait.REQUEST, limits.client_idle_s
        if wait is self._wait:
            return
        self._wait = wait
        self.deadline_s = self._service.loop.time() + limit_s
        head = reader.head
        if wait is _Wait.BODY and head is not None and head.expects_continue and reader.body_bytes == 0:
            self.write(CONTINUE)

    def _hold(self) -> bool:
        """Account for the bytes that are held; False when the worker has no room (the client was told)."""
        fresh = self._reader.held_bytes - self._held_bytes
        if fresh <= 0:
            return True
        if not self._service.reserve(fresh, self._reader.held_bytes):
            self.give_up()
            return False
        self._held_bytes += fresh
        return True

    def _unhold(self) -> None:
        if self._held_bytes:
            self._service.unreserve(self._held_bytes)
            self._held_bytes = 0

    def _reject(self, fault: RequestFault) -> None:
        """Answer bytes that are no request, then read nothing of this connection any more."""
        error = BadRequest(fault.message, status=fault.status, code=fault.code)
        self._answer(error_answer(error), close=True)
        self._reader.forget()
        self._unhold()
        if self._transport is None or self._transport.is_closing():
            return
        self._state = _LINGERING
        self.deadline_s = self._service.loop.time() + self._service.limits.client_linger_s
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _answer(self, answer: OwnAnswer, *, close: bool) -> None:
        head = self._reader.head
        self.write(answer.encode(close=close, without_body=head is not None and head.method == b"HEAD"))

    def _close(self) -> None:
        """Close after what was written has gone out, within the limit for a stalled write."""
        self._state = _CLOSED
        self.deadline_s = self._service.loop.time() + self._service.limits.client_write_stall_s
        if self._transport is not None:
            self._transport.close()
