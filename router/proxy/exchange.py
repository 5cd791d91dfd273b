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
    SENT       its body was lost before    HELD       waits for word whether engines died with it (loss)
    HELD       two did                     ENDED      502
    HELD       else                        NEW, ENDED as after any failure
    ANSWERING  last byte                   ENDED      booking released, usage learnt
    ANSWERING  failure                     ENDED      one error event in a stream; the client's connection is closed
    any        client goes away            ENDED      booking released, the engine's connection closed

Every way into ENDED passes through :meth:`Exchange._end`, once. What waits before the decision is a
:class:`~router.proxy.turn.Turn`, what is held at an instance an :class:`~router.proxy.attempt.Attempt`, what is written
at the end :mod:`router.proxy.closing`.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

import structlog

from router.core.decision import Decision
from router.core.policy import Policy
from router.proxy.answer import Answer
from router.proxy.attempt import Attempt, Maker
from router.proxy.client_side import Client
from router.proxy.closing import Accounted, close_books, reserve
from router.proxy.deadlines import NEVER, Timed
from router.proxy.errors import EnginesDied, Overloaded, ProxyError, TooManyRequests, Unavailable
from router.proxy.explain import decision_lines, refusal
from router.proxy.failure import Failure, FailureKind
from router.proxy.intake import Intake
from router.proxy.ledger import Outcome, outcome_of, record_refusal
from router.proxy.loss import admit, given_up, report_loss
from router.proxy.plane import Plane
from router.proxy.quotas import Reservation
from router.proxy.retry import decide_elsewhere, upstream_error
from router.proxy.shadow import decide_in_shadow
from router.proxy.spans import RequestSpan
from router.proxy.suspects import Suspect
from router.proxy.turn import Turn, Waiter
from router.proxy.wire.head import AnswerHead, RequestHead
from router.state.booking import BookingState

_log = structlog.get_logger(__name__)
_ANSWERED: Final = frozenset({Outcome.OK, Outcome.CLIENT_ERROR})


class Phase(Enum):
    """Where an exchange is; see the module's table."""

    NEW = "new"
    QUEUED = "queued"
    SENT = "sent"
    HELD = "held"
    ANSWERING = "answering"
    ENDED = "ended"


_SENT: Final = Phase.SENT
_ANSWERING: Final = Phase.ANSWERING
_ENDED: Final = Phase.ENDED
_BOOKED: Final = BookingState.BOOKED


class Exchange(Maker, Waiter, Accounted, Timed):
    """See the module's table. ``deadline_s`` is the limit of the current wait."""

    __slots__ = (
        "answer",
        "attempt",
        "attempts",
        "client",
        "deadline_s",
        "decision",
        "first_byte_s",
        "head",
        "intake",
        "left_to_do",
        "lines",
        "phase",
        "plane",
        "reservation",
        "span",
        "spent",
        "started_s",
        "suspect",
        "turn",
    )

    def __init__(self, plane: Plane, client: Client, head: RequestHead, intake: Intake) -> None:
        self.plane = plane
        self.client = client
        self.head = head
        self.intake = intake
        self.phase = Phase.NEW
        self.attempts = 0
        self.spent = 0
        """Attempts that an engine saw and failed."""
        self.turn: Turn | None = None
        self.attempt: Attempt | None = None
        self.decision: Decision | None = None
        self.lines = b""
        """What an answer's head says of the decision."""
        self.answer: Answer | None = None
        self.reservation: Reservation | None = None
        self.span: RequestSpan | None = None
        self.suspect: Suspect | None = None
        """What is known of its body, once an engine may have died with it."""
        self.left_to_do: Callable[[], None] | None = None
        """While held: what follows when it can be placed nowhere."""
        self.started_s = plane.loop.time()
        self.first_byte_s = 0.0
        self.deadline_s = NEVER

    # -- before the decision --

    def start(self, policy: Policy) -> None:
        """Place the request; everything after this happens in the connections' callbacks."""
        plane = self.plane
        plane.in_flight += 1
        plane.deadlines.add(self)
        plane.budget.earn()
        if plane.tracer is not None:
            self.span = plane.tracer.begin(self.head.fields, self.intake)
        if plane.suspects:
            try:
                admit(plane, self)
            except EnginesDied as error:
                self._refuse(error, Outcome.REFUSED)
                return
        tenant = self.intake.caller.tenant
        if tenant is not None:
            try:
                self.reservation = reserve(plane, self.intake, tenant)
            except TooManyRequests as error:
                self._refuse(error, Outcome.LIMITED)
                return
        if plane.admission.watches or plane.batch.window_s:
            self._take_turn(policy)
        else:
            self._decide(policy)

    def _take_turn(self, policy: Policy) -> None:
        self.turn = Turn(self.plane, self, policy)
        try:
            self.turn.take()
        except Overloaded as error:
            self._turn_away(error)

    def wait_until(self, deadline_s: float) -> None:
        """Wait for a turn, until ``deadline_s`` (monotonic) at most."""
        self.phase = Phase.QUEUED
        self.deadline_s = deadline_s

    def its_turn(self, policy: Policy) -> None:
        """Nothing stands before the decision any more."""
        if self.phase is _ENDED:
            return
        self.phase = Phase.NEW
        self.deadline_s = NEVER
        try:
            self._decide(policy)
        except Exception:
            self.crash()

    # -- placing --

    def _decide(self, policy: Policy) -> None:
        plane = self.plane
        decision = plane.decide(self.intake.request, self.intake, policy)
        if decision.chosen_index is None:
            self.decision = decision
            self._explain(decision)
            self._refuse(refusal(decision), Outcome.REFUSED)
            return
        if plane.table is not None and plane.table.shadows:
            decide_in_shadow(plane, self.intake, decision)
        self._place(decision)

    def _place(self, decision: Decision) -> None:
        """Book a decision and send the request, in the turn in which it was decided."""
        self.decision = decision
        self.attempts += 1
        attempt = self.attempt = Attempt(self.plane, self, decision)
        self.phase = _SENT
        attempt.send()
        self._explain(decision)

    def _explain(self, decision: Decision) -> None:
        """Keep what can be said of a decision that is obeyed; the engine need not wait for it."""
        self.lines = decision_lines(decision, self.intake.request.id.encode(), self.attempts)
        self.plane.remember(decision)

    def _try_elsewhere(self, attempt: Attempt, else_do: Callable[[], None]) -> None:
        """Place a failed attempt anew, when it is known that this may cost another engine."""
        if report_loss(self.plane, self, attempt):
            self.phase = Phase.HELD
            self.deadline_s = NEVER  # the question has its own limit
            self.left_to_do = else_do
        elif not self._place_elsewhere(attempt):
            else_do()

    def on_word(self) -> None:
        """It is known what became of the engines that this request was at."""
        if self.phase is not Phase.HELD:
            return
        try:
            self._go_on()
        except Exception:
            self.crash()

    def _go_on(self) -> None:
        self.phase = _SENT
        else_do, self.left_to_do = self.left_to_do, None
        if not self._place_elsewhere(self._placed()) and else_do is not None:
            else_do()

    def _place_elsewhere(self, attempt: Attempt) -> bool:
        """Release an attempt and make another, or give the request up; False (nothing changed) when neither may be."""
        error = given_up(self.plane, self)
        if error is not None:
            self._refuse(error, Outcome.UPSTREAM_ERROR)
            return True
        if attempt.failure is not None and attempt.was_seen:
            self.spent += 1
        elsewhere = decide_elsewhere(self.plane, self.intake, attempt, self.spent)
        if elsewhere is None:
            return False
        attempt.release()
        self.attempt = None
        self.phase = Phase.NEW
        self.plane.stats.fresh.retries += 1
        self._place(elsewhere)
        return True

    # -- the engine's side --

    def on_answer(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        """Take in the next payload bytes of the answer."""
        if complete and self.attempt is not None:
            self.attempt.connection = None
        try:
            if self.phase is _SENT:
                self._first(head, payload, complete)
            elif self.phase is _ANSWERING:
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
        began = self.phase is _ANSWERING
        if self.phase is _ENDED:
            return
        self._end(Outcome.CRASHED)
        if began:
            self.client.break_off()
        else:
            self.client.refuse(ProxyError("an internal error; the log has it under the request id"), b"")

    def _on_failure(self, failure: Failure, unanswered: bool) -> None:
        attempt = self._placed()
        if self.phase is _SENT and unanswered and self.intake.route.repeatable and attempt.send_again():
            return
        attempt.connection = None
        attempt.failed(failure)
        error = upstream_error(attempt, failure, self.attempts)
        if self.phase is _ANSWERING:
            report_loss(self.plane, self, attempt)
            self._break_answer(error)
        else:
            self._try_elsewhere(attempt, partial(self._refuse, error, Outcome.UPSTREAM_ERROR))

    def _placed(self) -> Attempt:
        if self.attempt is None:
            raise RuntimeError("nothing was placed")
        return self.attempt

    def _first(self, head: AnswerHead, payload: bytes, complete: bool) -> None:
        """Judge the answer by its first bytes; up to here it could still be placed elsewhere."""
        if head.status < 500 and not payload and not complete:
            return  # the head alone is held back: a failure may still follow
        attempt = self._placed()
        answer = Answer(head, self.head.minor, self.client.keeps_alive)
        failure = answer.first_failure(payload)
        if failure is None:
            attempt.link.breaker.succeeded()
            self._begin(attempt, answer, payload, complete)
            return
        attempt.failed(failure)
        self._try_elsewhere(attempt, partial(self._begin, attempt, answer, payload, complete))
        if self.phase is Phase.HELD and not complete:  # the rest of an error is not waited for
            attempt.drop_connection()
            error = upstream_error(attempt, failure, self.attempts)
            self.left_to_do = partial(self._refuse, error, Outcome.UPSTREAM_ERROR)

    def _begin(self, attempt: Attempt, answer: Answer, payload: bytes, complete: bool) -> None:
        """Pass on the first bytes of an answer; from here on it cannot be placed elsewhere."""
        self.phase = _ANSWERING
        self.answer = answer
        copies = attempt.link.copies
        if copies is not None and self.intake.route.teaches and answer.status == 200:
            answer.keep_whole(copies)
        lines = self.lines
        if self.reservation is not None:
            lines += self.reservation.lines(self.plane.loop.time())
        self.client.write(answer.first(lines, payload, complete))
        self._progress(answer, attempt, payload, complete)

    def _next(self, payload: bytes, complete: bool) -> None:
        answer, attempt = self.answer, self.attempt
        if answer is None or attempt is None:
            raise RuntimeError("an answer has begun before it continues")
        if answer.is_stream and attempt.failure is None and (failure := answer.failure_in(payload)) is not None:
            attempt.failed(failure)
            report_loss(self.plane, self, attempt)
        data = answer.frame(payload, complete)
        if data:
            self.client.write(data)
        self._progress(answer, attempt, payload, complete)

    def _progress(self, answer: Answer, attempt: Attempt, payload: bytes, complete: bool) -> None:
        now_s = self.plane.loop.time()
        booking = attempt.booking
        if payload and booking.state is _BOOKED and answer.is_first_token(payload):
            self.first_byte_s = now_s
            if not complete:  # else the end, in this very turn, releases everything at once
                attempt.first_byte(now_s, is_token=answer.is_stream and attempt.failure is None)
        if complete:
            self._end(outcome_of(answer, attempt.failure))
            self.client.done(reusable=not answer.ends_with_connection)
        else:
            self.deadline_s = now_s + self.plane.limits.between_bytes_s

    def _break_answer(self, error: ProxyError) -> None:
        """Tell the client of a stream in the stream; anything else can only be cut off."""
        answer = self.answer
        if answer is not None and answer.is_stream:
            self.client.write(answer.broken(error, self.intake.route.named_events))
            self._end(Outcome.BROKEN)
            self.client.done(reusable=False)
        else:
            self._end(Outcome.BROKEN)
            self.client.break_off()

    def _turn_away(self, error: Overloaded) -> None:
        record_refusal(self.plane.stats.fresh, self.intake.request.workload, error.code)
        self._refuse(error, Outcome.REFUSED)

    def _refuse(self, error: ProxyError, outcome: Outcome) -> None:
        self._end(outcome)
        self.client.refuse(error, self.lines)

    # -- the client's side, time, membership --

    def on_client_gone(self) -> None:
        """The client closed its connection: nothing is generated for nobody."""
        if self.phase is not _ENDED:
            self._end(Outcome.CANCELLED)

    def on_deadline(self, now_s: float) -> None:
        """The current wait took too long."""
        if self.phase is Phase.QUEUED:
            waited = f"no room within {self.plane.admission.wait_s:g} s"
            self._turn_away(Overloaded(waited, code="queue_timeout"))
            return
        kind = FailureKind.STALLED if self.phase is _ANSWERING else FailureKind.FIRST_BYTE_TIMEOUT
        self.deadline_s = NEVER
        if self.attempt is not None:
            self.attempt.drop_connection()
        self.on_failure(Failure(kind, f"nothing came for too long while {self.phase.value}"), unanswered=False)

    def on_instance_removed(self) -> None:
        """The instance is gone from the fleet: what it has not begun to answer goes elsewhere."""
        if self.phase is not _SENT:
            return
        if not self._place_elsewhere(self._placed()):
            self._refuse(Unavailable("the chosen instance was removed", retry_after_s=1), Outcome.UPSTREAM_ERROR)

    def pause(self) -> None:
        """The client reads slower than the engine writes: stop reading from the engine."""
        if self.attempt is not None and self.attempt.connection is not None:
            self.attempt.connection.pause_reading()
        self.deadline_s = NEVER  # the client's connection has its own limit for a stalled write

    def resume(self) -> None:
        """The client has caught up."""
        if self.attempt is not None and self.attempt.connection is not None:
            self.attempt.connection.resume_reading()
            self.deadline_s = self.plane.loop.time() + self.plane.limits.between_bytes_s

    # -- the end --

    def _end(self, outcome: Outcome) -> None:
        self.phase = _ENDED
        plane = self.plane
        plane.in_flight -= 1
        plane.deadlines.discard(self)
        if self.suspect is not None:
            plane.suspects.ended(self.suspect, self, answered=outcome in _ANSWERED)
        attempt, self.attempt = self.attempt, None
        turn, self.turn = self.turn, None
        try:
            close_books(plane, self, outcome, attempt)
        finally:
            if attempt is not None:
                attempt.release()
            if turn is not None:
                turn.leave()
