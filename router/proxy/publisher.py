"""Publishes snapshots four times a second; counts of one that was refused go into the next.

A snapshot that got no answer may have been taken. It is sent again as it was, before any other: whoever took it knows
it by its number, so nothing is lost and nothing counted twice, whichever process of the control plane answers.

The reply to a snapshot may ask about requests; the next snapshot carries the answers. So a control plane reaches every
worker without a way in of its own, and nobody else can ask.
"""

import asyncio

import msgspec
import structlog
from msgspec.structs import replace

from router.ports import Clock, NotTaken, SnapshotSink
from router.proxy.fetch import FetchFailed, FetchRequest, fetch
from router.proxy.plane import Plane
from router.proxy.pool import Pool
from router.proxy.snapshots import SnapshotTimes, WorkerIdentity, build_snapshot, explain
from router.proxy.stats import Tally
from router.snapshot import SnapshotAnswer, dump_snapshot, parse_answer
from router.unreadable import UNREADABLE

_log = structlog.get_logger(__name__)
EVERY_S = 0.25
MOST_BACKOFF_S = 5.0
DELIVERY_S = 2.0
MOST_EXPLAINED = 32
"""Questions that one snapshot answers; more in a reply are not answered."""


class ControlPlaneSink:
    """Delivers snapshots to the control plane."""

    def __init__(self, pool: Pool, token: str) -> None:
        self._pool = pool
        self._fields = {b"Authorization": b"Bearer " + token.encode(), b"Content-Type": b"application/json"}

    async def publish(self, body: bytes) -> bytes:
        """Deliver one snapshot; return what is said to it, empty for nothing.

        :raises NotTaken: when it was refused.
        :raises FetchFailed: when there was no answer, or one of a fault (a proxy's 502 tells nothing).
        """
        path = b"/api/v1/router/snapshots"
        request = FetchRequest(method=b"POST", path=path, fields=self._fields, body=body, limit_s=DELIVERY_S)
        answer = await fetch(self._pool, request)
        if 200 <= answer.status < 300:
            return answer.body
        reason = f"the control plane answered {answer.status} for a snapshot{_detail(answer.body)}"
        raise NotTaken(reason) if answer.status < 500 else FetchFailed(reason)


def _detail(problem: bytes) -> str:
    """Return what a refusal says, where it is problem+json."""
    try:
        return f": {msgspec.json.decode(problem, type=_Problem).detail}"
    except msgspec.MsgspecError:
        return ""


class _Problem(msgspec.Struct):
    detail: str


class _Sent(msgspec.Struct, frozen=True):
    """A snapshot that is under way, and what goes back when it is refused."""

    body: bytes
    tally: Tally
    since_s: float
    """Where its interval begins."""


class Publisher:
    """Sends one snapshot after the other; never more than one is under way."""

    def __init__(self, plane: Plane, sink: SnapshotSink, identity: WorkerIdentity, clock: Clock) -> None:
        self._plane = plane
        self._sink = sink
        self._identity = identity
        self._clock = clock
        self._seq = 0
        self._since_s = clock.monotonic_s()
        self._unanswered: _Sent | None = None
        self._failures = 0
        self._asked: tuple[str, ...] = ()

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            await asyncio.sleep(min(MOST_BACKOFF_S, EVERY_S * 2 ** min(self._failures, 5)))
            await self.publish_once()

    async def publish_once(self) -> bool:
        """Publish what was not delivered yet; False when that failed (nothing is lost)."""
        if self._unanswered is not None and not await self._deliver(self._unanswered):
            return False
        return await self._deliver(self._take())

    def _take(self) -> _Sent:
        """Make a snapshot of what there is since the last one."""
        now_s = self._clock.monotonic_s()
        times = SnapshotTimes(self._clock.unix_s(), now_s, now_s - self._since_s)
        tally = self._plane.stats.take()
        self._seq += 1
        snapshot = build_snapshot(self._plane, tally, self._identity, self._seq, times)
        if self._asked:
            snapshot = replace(snapshot, explained=tuple(explain(self._plane, one, times) for one in self._asked))
        sent = _Sent(dump_snapshot(snapshot), tally, self._since_s)
        self._since_s = now_s
        return sent

    async def _deliver(self, sent: _Sent) -> bool:
        self._unanswered = sent
        try:
            answer = await self._sink.publish(sent.body)
        except OSError as error:
            if isinstance(error, NotTaken):
                self._plane.stats.give_back(sent.tally)
                self._unanswered, self._since_s = None, sent.since_s
            if self._failures == 0:
                _log.warning("snapshot_not_delivered", reason=str(error))
            self._failures += 1
            return False
        self._unanswered, self._failures = None, 0
        self._hear(answer)
        return True

    def _hear(self, answer: bytes) -> None:
        try:
            said = parse_answer(answer) if answer else SnapshotAnswer()
        except UNREADABLE as error:
            _log.warning("snapshot_answer_unreadable", reason=str(error))
        else:
            if said.whole:  # else what others have let in is unknown: each soon keeps to its part
                self._plane.quotas.hear(said, self._plane.loop.time())
            self._asked = said.explain[:MOST_EXPLAINED]
