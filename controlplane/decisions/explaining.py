"""Why did a request go where it went: every router worker is asked, and what is at hand counts as well.

Clients use ids again (retries do), with another worker perhaps, so what is at hand need not be the newest: the search
is over when every worker has answered. Looking never waits; whoever wants an answer looks again until there is one, no
longer than ``LIMIT_S``, after which what is at hand has to do.
"""

import asyncio
import time
from collections.abc import Collection
from enum import StrEnum

import msgspec
from asgiref.sync import sync_to_async

from controlplane.decisions.keeping import keep, kept
from controlplane.decisions.models import Question
from controlplane.decisions.questions import answered_by, ask
from controlplane.errors import Conflict
from controlplane.telemetry.hub import hub
from controlplane.telemetry.rollups import workers_heard_since
from controlplane.telemetry.sharing.process import sharing
from controlplane.telemetry.workers import worker_statuses
from router.snapshot import DecisionSample

LIMIT_S = 2.5
_LOOK_EVERY_S = 0.1
_LATELY_S = 25.0
"""While other web processes are not heard, roll-ups say whom they hear: ten seconds each, written when full."""


class Finding(StrEnum):
    """What became of the search."""

    FOUND = "found"
    WAITING = "waiting"
    FORGOTTEN = "forgotten"
    """Every worker that lives has answered that it does not remember the request."""
    UNANSWERED = "unanswered"
    """Some worker did not answer in time."""
    NO_WORKERS = "no_workers"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The newest decision that is known about a request, or why there is none."""

    request_id: str
    finding: Finding
    decision: DecisionSample | None = None
    asked: int = 0
    """Workers that were asked."""
    silent: tuple[str, ...] = ()
    """Of these, the ones that have not answered."""


def at_hand(request_id: str) -> DecisionSample | None:
    """Return the newest decision that routers sent by themselves, or that was kept; it is kept from now on."""
    sample = hub().decisions.find(request_id)
    return kept(request_id) if sample is None else keep(sample)


def explain(request_id: str) -> Explanation:
    """Explain a request by its newest decision; blocks for ``LIMIT_S`` at most.

    :raises Invalid: for what is no request id.
    :raises Conflict: when too many are being asked about, and nothing is at hand.
    """
    found, question = _begin(request_id)
    until_s = time.monotonic() + LIMIT_S
    while question is not None and found.finding is Finding.WAITING and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
        found = _look(question)
    return _ended(found)


async def explain_in_loop(request_id: str) -> Explanation:
    """Explain a request without holding a thread meanwhile; see :func:`explain`."""
    found, question = await sync_to_async(_begin)(request_id)
    until_s = time.monotonic() + LIMIT_S
    while question is not None and found.finding is Finding.WAITING and time.monotonic() < until_s:
        await asyncio.sleep(_LOOK_EVERY_S)
        found = await sync_to_async(_look)(question)
    return _ended(found)


def _begin(request_id: str) -> tuple[Explanation, Question | None]:
    try:
        question = ask(request_id)
    except Conflict:
        sample = at_hand(request_id)
        if sample is None:
            raise
        return Explanation(request_id=request_id, finding=Finding.FOUND, decision=sample), None
    return _look(question), question


def _look(question: Question) -> Explanation:
    """Return the state of the search; who has answered is read before what was found, which was written first."""
    live = {status.name for status in worker_statuses() if status.live}
    if not sharing().hears_others:
        live |= workers_heard_since(time.time() - _LATELY_S)
    silent = tuple(sorted(live - answered_by(question)))
    sample = at_hand(question.request_id)
    return Explanation(
        request_id=question.request_id,
        finding=_finding(sample, live, silent),
        decision=sample,
        asked=len(live),
        silent=silent,
    )


def _finding(sample: DecisionSample | None, live: Collection[str], silent: Collection[str]) -> Finding:
    if silent:
        return Finding.WAITING
    if sample is not None:
        return Finding.FOUND
    return Finding.FORGOTTEN if live else Finding.NO_WORKERS


def _ended(found: Explanation) -> Explanation:
    if found.finding is not Finding.WAITING:
        return found
    finding = Finding.UNANSWERED if found.decision is None else Finding.FOUND
    return msgspec.structs.replace(found, finding=finding)
