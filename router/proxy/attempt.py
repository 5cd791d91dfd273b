"""One attempt: what a request holds at the instance where it was placed, from its booking to its release.

An attempt reaches its instance over a pooled connection or a new one. What comes of it is told to its maker, which
judges it; an attempt itself decides only that a connection which had gone stale in the pool is replaced, once.
"""

import asyncio
from typing import Protocol

from router.core.decision import Decision
from router.proxy.deadlines import NEVER
from router.proxy.failure import Failure
from router.proxy.intake import Intake
from router.proxy.ledger import record_choice, record_failure
from router.proxy.link import OnLink
from router.proxy.plane import Plane
from router.proxy.spans import RequestSpan
from router.proxy.upstream import AnswerListener, UpstreamConnection
from router.proxy.wire.encode import Outgoing, encode_request_head
from router.proxy.wire.head import RequestHead


class Maker(AnswerListener, OnLink, Protocol):
    """Whose attempt it is. ``deadline_s`` is the limit of its current wait (monotonic)."""

    deadline_s: float
    head: RequestHead
    intake: Intake
    span: RequestSpan | None


class Attempt:
    """Holds a booking, and a connection once there is one. The maker lets go of it when it is released."""

    __slots__ = (
        "_connecting",
        "_maker",
        "_plane",
        "_resent",
        "booking",
        "connection",
        "decision",
        "failure",
        "link",
        "pace",
    )

    def __init__(self, plane: Plane, maker: Maker, decision: Decision) -> None:
        """Book a decision, in the turn in which it was decided.

        :raises RuntimeError: for a decision that chose nothing.
        """
        chosen = decision.chosen
        if chosen is None:
            raise RuntimeError("a decision without a chosen instance cannot be placed")
        self._plane = plane
        self._maker = maker
        self._resent = False
        self.decision = decision
        self.failure: Failure | None = None
        """The last that was held against it."""
        self._connecting: asyncio.Task[None] | None = None
        self.connection: UpstreamConnection | None = None
        self.link = plane.links[chosen.view.slot]
        now_s = plane.loop.time()
        self.pace = self.link.pace.placed(now_s)
        self.booking = plane.fleet.hold(decision, now_s)

    def send(self) -> None:
        """Send the request, as soon as there is a connection; then note what the engine need not wait for."""
        plane, link, decision = self._plane, self.link, self.decision
        link.exchanges.add(self._maker)
        link.breaker.chosen(self)
        connection = link.pool.take()
        if connection is not None:
            self._send(connection)
        else:
            self._connect()
        plane.fleet.expect(self.booking, self._maker.intake.chain)
        if decision.request.session is not None:
            plane.sessions.served(decision.request.session, link.instance.slot)
        record_choice(plane.stats.fresh, link.instance, decision)

    def send_again(self) -> bool:
        """Send it once more where the lost connection came from the pool, once; False when that is no remedy."""
        connection, self.connection = self.connection, None
        if self._resent or connection is None or connection.uses <= 1:
            return False
        self._resent = True
        self._connect()
        return True

    def failed(self, failure: Failure) -> None:
        """Hold a failure against the instance."""
        self.failure = failure
        link, plane = self.link, self._plane
        if not failure.kind.is_our_own:
            link.breaker.failed(self, plane.loop.time(), certain=failure.kind.is_certain)
        record_failure(plane.stats.fresh, link.instance, failure)

    @property
    def found_dead(self) -> bool:
        """Whether the engine took the request, closed the connection, and then refused the next one."""
        return self._resent and self.failure is not None and self.failure.kind.is_certain

    @property
    def was_seen(self) -> bool:
        """Whether an engine may have seen the request."""
        return self._resent or self.failure is None or not self.failure.kind.is_certain

    @property
    def may_have_killed(self) -> bool:
        """Whether the engine may have died with the request."""
        return self.found_dead or (self.failure is not None and self.failure.may_be_death)

    def drop_connection(self) -> None:
        """Let the engine generate nothing more for this attempt."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self.connection is not None:
            self.connection.abort()
            self.connection = None

    def first_byte(self, now_s: float, *, is_token: bool) -> None:
        """The engine has begun to answer; ``is_token``: with the first token of a stream."""
        self.booking.first_byte(now_s if is_token else None)
        if is_token:
            self.pace.first_token(now_s, self.booking.new_tokens)

    def release(self) -> None:
        """Give back everything that is held."""
        self.drop_connection()
        self.booking.end()
        self.pace.ended(self._plane.loop.time())
        link = self.link
        link.exchanges.discard(self._maker)
        link.breaker.ended(self)

    def _connect(self) -> None:
        self._maker.deadline_s = NEVER  # the pool has its own limit
        self._connecting = self.link.pool.connect(self._connected, self._not_connected)

    def _connected(self, connection: UpstreamConnection) -> None:
        self._connecting = None
        self._send(connection)

    def _not_connected(self, failure: Failure) -> None:
        self._connecting = None
        self._maker.on_failure(failure, unanswered=True)

    def _send(self, connection: UpstreamConnection) -> None:
        plane, maker, link = self._plane, self._maker, self.link
        self.connection = connection
        maker.deadline_s = plane.loop.time() + plane.limits.first_byte_s
        head, intake, span = maker.head, maker.intake, maker.span
        body = intake.body
        outgoing = Outgoing(
            link.pool.address.prefix + head.target,
            link.pool.host_header,
            intake.request.id.encode(),
            len(body),
        )
        outgoing.authorization = link.authorization
        outgoing.drop_key = intake.caller.has_our_key
        outgoing.rank = link.instance.config.rank
        if span is not None:
            outgoing.traceparent = span.traceparent
        connection.begin(maker, encode_request_head(head, outgoing), body)
