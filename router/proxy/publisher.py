"""Publishes snapshots four times a second; counts of a delivery that failed go into the next.

The reply to a snapshot may ask about requests; the next snapshot carries the answers. So a control plane reaches every
worker without a way in of its own, and nobody else can ask.
"""

import asyncio

import msgspec
import structlog
from msgspec.structs import replace

from router.ports import Clock, SnapshotSink
from router.proxy.fetch import FetchFailed, FetchRequest, fetch
from router.proxy.plane import Plane
from router.proxy.pool import Pool
from router.proxy.snapshots import SnapshotTimes, WorkerIdentity, build_snapshot, explain
from router.snapshot import SnapshotAnswer, dump_snapshot, parse_answer

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

        :raises OSError: when it was not accepted.
        """
        path = b"/api/v1/router/snapshots"
        request = FetchRequest(method=b"POST", path=path, fields=self._fields, body=body, limit_s=DELIVERY_S)
        answer = await fetch(self._pool, request)
        if not 200 <= answer.status < 300:
            raise FetchFailed(f"the control plane answered {answer.status} for a snapshot")
        return answer.body


class Publisher:
    """Sends one snapshot after the other; never more than one is under way."""

    def __init__(self, plane: Plane, sink: SnapshotSink, identity: WorkerIdentity, clock: Clock) -> None:
        self._plane = plane
        self._sink = sink
        self._identity = identity
        self._clock = clock
        self._seq = 0
        self._delivered_s = clock.monotonic_s()
        self._failures = 0
        self._asked: tuple[str, ...] = ()

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            await asyncio.sleep(min(MOST_BACKOFF_S, EVERY_S * 2 ** min(self._failures, 5)))
            await self.publish_once()

    async def publish_once(self) -> bool:
        """Publish what was not delivered yet; False when that failed (nothing is lost)."""
        now_s = self._clock.monotonic_s()
        times = SnapshotTimes(self._clock.unix_s(), now_s, now_s - self._delivered_s)
        tally = self._plane.stats.take()
        self._seq += 1
        snapshot = build_snapshot(self._plane, tally, self._identity, self._seq, times)
        if self._asked:
            snapshot = replace(snapshot, explained=tuple(explain(self._plane, one, times) for one in self._asked))
        try:
            answer = await self._sink.publish(dump_snapshot(snapshot))
        except BaseException as error:
            self._plane.stats.give_back(tally)
            if not isinstance(error, OSError):
                raise
            if self._failures == 0:
                _log.warning("snapshot_not_delivered", reason=str(error))
            self._failures += 1
            return False
        self._failures = 0
        self._delivered_s = now_s
        self._hear(answer)
        return True

    def _hear(self, answer: bytes) -> None:
        try:
            said = parse_answer(answer) if answer else SnapshotAnswer()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            _log.warning("snapshot_answer_unreadable", reason=str(error))
        else:
            self._plane.quotas.hear(said, self._plane.loop.time())
            self._asked = said.explain[:MOST_EXPLAINED]
