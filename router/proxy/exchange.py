"""One request, from its arrival to its end: decide, book, send, answer, release.

Life-cycle, as a table::

    phase      event                       next       effect
    NEW        no room, or a window        QUEUED     waits for its turn (admission), or for others (batch)
    QUEUED     its turn, or window over    NEW
    QUEUED     waited too long             ENDED      an error of our own
    NEW        placed                      SENT       decided and booked in one turn, then sent upstream
    NEW        refused                     ENDED      an error of our own
    SENT       first byte of the answer    ANSWERING  queued prefill released; from here on nothing is retried
    SENT       failure, retry allowed      NEW        booking released, the instance excluded
    SENT       failure, no retry           ENDED      the engine's own error answer, or 502 / 504
    ANSWERING  last byte                   ENDED      booking released, usage learnt
    ANSWERING  failure                     ENDED      one error event in a stream; the client's connection is closed
    any        client goes away            ENDED      booking released, the engine's connection closed

Every way into ENDED passes through :meth:`Exchange._end`, once.
"""

import asyncio
from enum import Enum
from typing import Protocol

import structlog
from msgspec.structs import replace

from router.core.decision import Decision
from router.core.policy import Policy
from router.proxy.admission import Admission, Ticket
from router.proxy.answer import Answer
from router.proxy.deadlines import NEVER
from router.proxy.errors import Overloaded, ProxyError, TooManyRequests, Unavailable, UpstreamFailed, UpstreamTimeout
from router.proxy.explain import decision_lines, refusal
from router.proxy.failure import Failure, FailureKind
from router.proxy.intake import Intake
from router.proxy.ledger import Ended, Outcome, record_choice, record_end, record_failure, record_shadow
from router.proxy.link import Link
from router.proxy.plane import Plane
from router.proxy.quotas import Reservation
from router.proxy.spans import RequestSpan
from router.proxy.sse import closing_event
from router.proxy.table import RoutingTable
from router.proxy.upstream import UpstreamConnection
from router.proxy.usage import Usage
from router.proxy.wire.encode import Outgoing, encode_request_head
from router.proxy.wire.head import AnswerHead, RequestHead
from router.state.booking import Booking, BookingState

_log = structlog.get_logger(__name__)
CERTAIN = frozenset({FailureKind.CONNECT})
"""Failures in which the engine never saw the request: they use up no attempt, only an instance."""
UNBUDGETED = frozenset({FailureKind.CONNECT, FailureKind.RESET})
"""A dead engine's requests are always placed anew; slow and overloaded ones draw on the budget."""


class Phase(Enum):
    """Where an exchange is; see the module's table."""

    NEW = "new"
    QUEUED = "queued"
    SENT = "sent"
    ANSWERING = "answering"
    ENDED = "ended"


class Client(Protocol):
    """The client's side of an exchange."""

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays open after this answer."""
        ...

    def write(self, data: bytes) -> None:
        """Send answer bytes."""
        ...

    def refuse(self, error: ProxyError, lines: bytes) -> None:
        """Send an error of our own as the whole answer."""
        ...

    def done(self, *, reusable: bool) -> None:
        """The exchange is over; a connection that is not reusable is closed after what was written."""
        ...

    def break_off(self) -> None:
        """Close at once, so that a cut answer cannot be taken for a whole one."""
        ...


class Exchange:
    """See the module's table. ``deadline_s`` is the limit of the current wait."""

    __slots__ = (
        "answer",
        "attempts",
        "body",
        "booking",
        "client",
        "connecting",
        "connection",
        "deadline_s",
        "decision",
        "first_byte_s",
        "head",
        "intake",
        "last_failure",
        "link",
        "phase",
        "plane",
        "policy",
        "resent",
        "reservation",
        "span",
        "spent",
        "started_s",
        "ticket",
    )

    def __init__(self, plane: Plane, client: Client, head: RequestHead, intake: Intake) -> None:
        self.plane = plane
        self.client = client
        self.head = head
        self.body = intake.body
        self.intake = intake
        self.phase = Phase.NEW
        self.attempts = 0
        self.spent = 0
        """Attempts that an engine saw and failed."""
        self.resent = False
        self.booking: Booking | None = None
        self.link: Link | None = None
        self.connection: UpstreamConnection | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.decision: Decision | None = None
        self.answer: Answer | None = None
        self.policy: Policy | None = None
        self.reservation: Reservation | None = None
        self.ticket: Ticket | None = None
        self.span: RequestSpan | None = None
        self.last_failure: Failure | None = None
        self.started_s = plane.loop.time()
        self.first_byte_s = 0.0
        self.deadline_s = NEVER

    # -- placing --

    def start(self, policy: Policy) -> None:
        """Place the request; everything after this happens in the connections' callbacks."""
        self.policy = policy
        plane = self.plane
        plane.in_flight += 1
        plane.deadlines.add(self)
        plane.budget.earn()
        if plane.tracer is not None:
            self.span = plane.tracer.begin(self.head.fields, self.intake)
        if self.intake.caller.tenant is not None:
            try:
                self.reservation = self._reserve(self.intake.caller.tenant)
            except TooManyRequests as error:
                self._refuse(error, Outcome.LIMITED)
                return
        if not plane.admission.watches or self._enter(plane.admission):
            self._decide_soon(policy)

    def _enter(self, admission: Admission) -> bool:
        """Show a ticket at the door; False when it has to wait, or was refused."""
        request = self.intake.request
        ticket = Ticket(self, self.intake.caller.tenant, request.workload, request.prompt_tokens)
        try:
            inside = admission.enter(ticket)
        except Overloaded as error:
            self._refuse(error, Outcome.REFUSED)
            return False
        self.ticket = ticket
        if not inside:
            self.phase = Phase.QUEUED
            self.deadline_s = self.plane.loop.time() + admission.wait_s
        return inside

    def admitted(self) -> None:
        """It is this request's turn."""
        self.phase = Phase.NEW
        self.deadline_s = NEVER
        if self.policy is not None:
            self._decide_soon(self.policy)

    def _decide_soon(self, policy: Policy) -> None:
        """Decide at once, or at the end of the window where there is one."""
        batch = self.plane.batch
        if batch.window_s:
            self.phase = Phase.QUEUED
            self.deadline_s = NEVER
            batch.add(self)
        else:
            self._decide(policy)

    @property
    def held_blocks(self) -> int:
        """Leading blocks of the prompt at the instance that holds the most of them."""
        return max(self.plane.fleet.index.match(self.intake.chain), default=0)

    def decide_now(self) -> None:
        """The window is over."""
        if self.phase is not Phase.QUEUED or self.policy is None:
            return
        self.phase = Phase.NEW
        try:
            self._decide(self.policy)
        except Exception:
            self.crash()

    def _decide(self, policy: Policy) -> None:
        decision = self.plane.decide(self.intake.request, self.intake.chain, policy)
        if decision.chosen_index is None:
            self.decision = decision
            self._refuse(refusal(decision), Outcome.REFUSED)
        else:
            table = self.plane.table
            if table is not None and table.shadows:
                self._decide_in_shadow(decision, table)
            self._place(decision)

    def _reserve(self, tenant: str) -> Reservation:
        plane, intake = self.plane, self.intake
        output = plane.outputs.mean if intake.most_output is None else intake.most_output
        return plane.quotas.of(tenant).reserve(intake.request.prompt_tokens + round(output), plane.loop.time())

    def _decide_in_shadow(self, decision: Decision, table: RoutingTable) -> None:
        """Let the workload's shadow policy decide on the same views, and count where it differs; nothing is booked."""
        plane = self.plane
        workload = self.intake.request.workload
        shadow = table.shadows.get(workload)
        if shadow is not None:
            other = plane.imagine(self.intake.request, self.intake.chain, shadow)
            record_shadow(plane.stats.fresh, workload, decision, other)

    def _place(self, decision: Decision) -> None:
        """Book a decision and send the request, in the turn in which it was decided."""
        chosen = decision.chosen
        if chosen is None:
            raise RuntimeError("a decision without a chosen instance cannot be placed")
        plane = self.plane
        now_s = plane.loop.time()
        self.decision = decision
        self.attempts += 1
        self.resent = False
        self.booking = plane.fleet.book(decision, self.intake.chain, now_s)
        link = self.link = plane.links[chosen.view.slot]
        link.exchanges.add(self)
        if decision.request.session is not None:
            plane.sessions.served(decision.request.session, chosen.view.slot)
        link.breaker.chosen(self)
        record_choice(plane.stats.fresh, link.instance, decision)
        self.phase = Phase.SENT
        connection = link.pool.take()
        if connection is not None:
            self._send(connection)
        else:
            self._connect(link)

    def _connect(self, link: Link) -> None:
        self.deadline_s = NEVER  # the pool has its own limit
        self.connecting = link.pool.connect(self._connected, self._not_connected)

    def _connected(self, connection: UpstreamConnection) -> None:
        self.connecting = None
        self._send(connection)

    def _not_connected(self, failure: Failure) -> None:
        self.connecting = None
        self.on_failure(failure, unanswered=True)

    def _send(self, connection: UpstreamConnection) -> None:
        link = self.link
        if link is None:
            raise RuntimeError("nothing is sent before it was placed")
        self.connection = connection
        self.deadline_s = self.plane.loop.time() + self.plane.limits.first_byte_s
        intake = self.intake
        outgoing = Outgoing(
            link.pool.address.prefix + self.head.target,
            link.pool.host_header,
            intake.request.id.encode(),
            len(self.body),
            link.authorization,
            intake.caller.has_our_key,
            None if self.span is None else self.span.traceparent,
        )
        connection.begin(self, encode_request_head(self.head, outgoing), self.body)

    # -- the engine's side --

    def on_answer(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        """Take in the next payload bytes of the answer."""
        if complete:
            self.connection = None
        try:
            if self.phase is Phase.SENT:
                self._first(head, payload, complete)
            elif self.phase is Phase.ANSWERING:
                self._next(payload, complete)
        except Exception:
            self.crash()

    def on_failure(self, failure: Failure, *, unanswered: bool) -> None:
        """The attempt failed: send it again, place it elsewhere, or tell the client."""
        try:
            self._on_failure(failure, unanswered)
        except Exception:
            self.crash()

    def crash(self) -> None:
        """A fault of this program: log it with the request's id, give everything back, and tell the client."""
        _log.exception("request_crashed", request_id=self.intake.request.id)
        began = self.phase is Phase.ANSWERING
        if self.phase is Phase.ENDED:
            return
        self._end(Outcome.CRASHED)
        if began:
            self.client.break_off()
        else:
            self.client.refuse(ProxyError("an internal error; the log has it under the request id"), b"")

    def _on_failure(self, failure: Failure, unanswered: bool) -> None:
        connection, self.connection = self.connection, None
        repeatable = self.intake.route.repeatable
        stale = repeatable and unanswered and connection is not None and connection.uses > 1
        if self.phase is Phase.SENT and stale and not self.resent:
            self._send_again()
            return
        self._failed(failure)
        if self.phase is Phase.ANSWERING:
            self._break_answer(failure)
        elif not self._place_elsewhere():
            self._refuse(self._upstream_error(failure), Outcome.UPSTREAM_ERROR)

    def _send_again(self) -> None:
        """A pooled connection was stale: the same instance gets the request on a fresh one, once."""
        link = self.link
        if link is None:
            raise RuntimeError("nothing was sent")
        self.resent = True
        self._connect(link)

    def _first(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        """Judge the answer by its first bytes; up to here it could still be placed elsewhere."""
        if head.status < 500 and not payload and not complete:
            return  # the head alone is held back: a failure may still follow
        answer = Answer(head, self.head.minor, self.client.keeps_alive)
        failure = _failure_in(answer, payload)
        if failure is None:
            if self.link is not None:
                self.link.breaker.succeeded()
        elif self._judge(failure):
            return
        self._begin_answer(answer, payload, complete)

    def _judge(self, failure: Failure) -> bool:
        """Note a failure that came as an answer; True when the request was placed elsewhere."""
        self._failed(failure)
        connection, self.connection = self.connection, None
        if self._place_elsewhere():
            if connection is not None:
                connection.abort()
            return True
        self.connection = connection
        return False

    def _begin_answer(self, answer: Answer, payload: bytes, complete: bool) -> None:
        self.phase = Phase.ANSWERING
        self.answer = answer
        lines = self._lines()
        if self.reservation is not None:
            lines += self.reservation.lines(self.plane.loop.time())
        self.client.write(answer.first(lines, payload, complete))
        self._progress(payload, complete)

    def _next(self, payload: bytes, complete: bool) -> None:
        answer = self.answer
        if answer is None:
            raise RuntimeError("an answer has begun before it continues")
        if answer.is_stream and self.last_failure is None and (status := answer.watch.see(payload)) is not None:
            self._failed(_error_event(status))
        data = answer.frame(payload, complete)
        if data:
            self.client.write(data)
        self._progress(payload, complete)

    def _progress(self, payload: bytes, complete: bool) -> None:
        answer, booking = self.answer, self.booking
        if answer is None or booking is None:
            raise RuntimeError("an answer without a booking")
        now_s = self.plane.loop.time()
        if payload and booking.state is BookingState.BOOKED and answer.is_first_token(payload):
            self.first_byte_s = now_s
            if not complete:  # else the end, in this very turn, releases everything at once
                is_token = answer.is_stream and self.last_failure is None
                booking.first_byte(now_s if is_token else None)
        if complete:
            self._complete(answer)
        else:
            self.deadline_s = now_s + self.plane.limits.between_bytes_s

    def _complete(self, answer: Answer) -> None:
        if self.last_failure is not None:
            outcome = Outcome.UPSTREAM_ERROR
        elif answer.status >= 400:
            outcome = Outcome.CLIENT_ERROR
        else:
            outcome = Outcome.OK
        self._end(outcome)
        self.client.done(reusable=not answer.ends_with_connection)

    # -- failures --

    def _failed(self, failure: Failure) -> None:
        self.last_failure = failure
        link = self.link
        if link is not None:
            link.breaker.failed(self, self.plane.loop.time(), certain=failure.kind in CERTAIN)
            record_failure(self.plane.stats.fresh, link.instance, failure)

    def _place_elsewhere(self) -> bool:
        """Release the booking and place the request where it has not been; False (nothing changed) when it must not."""
        plane, decision, policy, failure = self.plane, self.decision, self.policy, self.last_failure
        chosen = None if decision is None else decision.chosen
        if decision is None or chosen is None or policy is None:
            return False
        if failure is not None and failure.kind not in CERTAIN:
            self.spent += 1
            if not self.intake.route.repeatable:
                return False
        if self.spent >= plane.limits.max_attempts:
            return False
        request = decision.request
        if self.link is None or self.link.instance.position is not None:
            request = replace(
                request, tried=request.tried | {chosen.view.slot}
            )  # a removed one's slot may be another's
        elsewhere = plane.decide(request, self.intake.chain, policy)
        if elsewhere.chosen_index is None:
            return False
        if failure is not None and failure.kind not in UNBUDGETED and not plane.budget.spend():
            return False
        self._release()
        self.last_failure = None
        self.phase = Phase.NEW
        plane.stats.fresh.retries += 1
        self._place(elsewhere)
        return True

    def _upstream_error(self, failure: Failure) -> ProxyError:
        name = "the engine" if self.link is None else self.link.instance.config.name
        message = f"{name}: {failure.detail} ({failure.kind.value}), after {self.attempts} attempts"
        return UpstreamTimeout(message) if failure.kind.is_timeout else UpstreamFailed(message)

    def _break_answer(self, failure: Failure) -> None:
        """Tell the client of a stream in the stream; anything else can only be cut off."""
        answer = self.answer
        error = self._upstream_error(failure)
        if answer is not None and answer.is_stream:
            named = self.intake.route.named_events
            self.client.write(answer.frame(closing_event(error, answer.tail.bytes()[-4:], named), False))
            self._end(Outcome.BROKEN)
            self.client.done(reusable=False)
        else:
            self._end(Outcome.BROKEN)
            self.client.break_off()

    def _refuse(self, error: ProxyError, outcome: Outcome) -> None:
        self._end(outcome)
        self.client.refuse(error, b"" if self.decision is None else self._lines())

    # -- the client's side, time, membership --

    def on_client_gone(self) -> None:
        """The client closed its connection: nothing is generated for nobody."""
        if self.phase is not Phase.ENDED:
            self._end(Outcome.CANCELLED)

    def on_deadline(self, now_s: float) -> None:
        """The current wait took too long."""
        if self.phase is Phase.QUEUED:
            waited = f"no room within {self.plane.admission.wait_s:g} s"
            self._refuse(self.plane.admission.refusal("queue_timeout", waited), Outcome.REFUSED)
            return
        connection = self.connection
        kind = FailureKind.STALLED if self.phase is Phase.ANSWERING else FailureKind.FIRST_BYTE_TIMEOUT
        self.deadline_s = NEVER
        if connection is not None:
            connection.abort()
        self.connection = None
        self.on_failure(Failure(kind, f"nothing came for too long while {self.phase.value}"), unanswered=False)

    def on_instance_removed(self) -> None:
        """The instance is gone from the fleet: what it has not begun to answer goes elsewhere."""
        if self.phase is not Phase.SENT:
            return
        self._drop_connection()
        if not self._place_elsewhere():
            self._refuse(Unavailable("the chosen instance was removed", retry_after_s=1), Outcome.UPSTREAM_ERROR)

    def pause(self) -> None:
        """The client reads slower than the engine writes: stop reading from the engine."""
        if self.connection is not None:
            self.connection.pause_reading()
        self.deadline_s = NEVER  # the client's connection has its own limit for a stalled write

    def resume(self) -> None:
        """The client has caught up."""
        if self.connection is not None:
            self.connection.resume_reading()
            self.deadline_s = self.plane.loop.time() + self.plane.limits.between_bytes_s

    # -- the end --

    def _lines(self) -> bytes:
        if self.decision is None:
            raise RuntimeError("no decision yet")
        return decision_lines(self.decision, self.intake.request.id.encode(), self.attempts)

    def _end(self, outcome: Outcome) -> None:
        self.phase = Phase.ENDED
        plane = self.plane
        plane.in_flight -= 1
        plane.deadlines.discard(self)
        self._drop_connection()
        ended = self._ended(outcome)
        usage = record_end(plane.stats.fresh, plane.calibration, ended)
        if plane.recorder is not None:
            plane.recorder.note(self.intake, ended, usage)
        if self.span is not None:
            self.span.end(ended, self.attempts, usage)
        if self.reservation is not None:
            self._settle(usage)
        self._release()
        if self.ticket is not None:
            plane.admission.leave(self.ticket)

    def _settle(self, usage: Usage | None) -> None:
        """Charge the tenant what was used: the engine's own count, or, of an answer cut short, what had come."""
        reservation, answer = self.reservation, self.answer
        if reservation is None:
            return
        if usage is not None:
            self.plane.outputs.learn(usage.output_tokens)
            used = usage.prompt_tokens + usage.output_tokens
        elif answer is None or answer.status >= 400:
            used = 0
        else:
            used = self.intake.request.prompt_tokens + answer.events
        reservation.settle(used, self.plane.loop.time())

    def _ended(self, outcome: Outcome) -> Ended:
        return Ended(
            outcome=outcome,
            decision=self.decision,
            instance=None if self.link is None else self.link.instance,
            answer=self.answer,
            text_bytes=self.intake.text_bytes,
            workload=self.intake.request.workload,
            tenant=self.intake.caller.tenant,
            started_s=self.started_s,
            first_token_s=self.first_byte_s,
            ended_s=self.plane.loop.time(),
        )

    def _drop_connection(self) -> None:
        if self.connecting is not None:
            self.connecting.cancel()
            self.connecting = None
        if self.connection is not None:
            self.connection.abort()
            self.connection = None

    def _release(self) -> None:
        """Give back what this attempt holds at its instance."""
        booking, self.booking = self.booking, None
        link, self.link = self.link, None
        if booking is not None:
            booking.end()
        if link is not None:
            link.exchanges.discard(self)
            link.breaker.ended(self)


def _failure_in(answer: Answer, payload: bytes) -> Failure | None:
    """Return what makes an answer a failure, judged by its status and its first bytes."""
    if answer.status >= 500:
        return Failure(FailureKind.STATUS, f"status {answer.status}")
    status = answer.watch.see(payload) if answer.is_stream else None
    return None if status is None else _error_event(status)


def _error_event(status: int) -> Failure:
    return Failure(FailureKind.IN_STREAM, f"an error event with code {status} in the stream")
