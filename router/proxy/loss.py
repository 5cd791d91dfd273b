"""What an attempt that failed says about its engine, and about its request."""

from functools import partial
from typing import Protocol

from router.proxy.attempt import Attempt
from router.proxy.errors import EnginesDied
from router.proxy.intake import Intake
from router.proxy.plane import Plane
from router.proxy.suspects import Suspect, Waiting
from router.proxy.wire.head import RequestHead


class Losing(Waiting, Protocol):
    """A request, as far as its losses go."""

    head: RequestHead
    intake: Intake
    suspect: Suspect | None


def admit(plane: Plane, request: Losing) -> None:
    """Look whether a request is one that engines died with; only while there are any.

    :raises EnginesDied: when it is, and must not be sent now.
    """
    suspect = request.suspect = plane.suspects.find(request.head.path, request.intake.body)
    now_s = plane.loop.time()
    if suspect is None or suspect.admits(request, now_s):
        return
    plane.suspects.refused += 1
    raise EnginesDied(suspect.engines, suspect.breaker.left_s(now_s))


def report_loss(plane: Plane, request: Losing, attempt: Attempt) -> bool:
    """Note a failed attempt with which its engine may have died; True when the request must wait for word of that."""
    if not attempt.may_have_killed:
        return False
    now_s = plane.loop.time()
    suspect, lost_before = plane.suspects.lost(request.head.path, request.intake.body, now_s)
    request.suspect = suspect
    told = partial(_told, plane, request, attempt, suspect)
    if attempt.found_dead:
        told(True)
    else:
        attempt.link.inquest.ask(told)
    if not lost_before or not suspect.pending:
        return False
    suspect.waiting.append(request)
    return True


def given_up(plane: Plane, request: Losing) -> EnginesDied | None:
    """Return what the client of a request is told that has cost as many engines as it may, or None."""
    suspect = request.suspect
    if suspect is None or not suspect.is_given_up:
        return None
    plane.suspects.given_up += 1
    return EnginesDied(suspect.engines, suspect.breaker.left_s(plane.loop.time()))


def _told(plane: Plane, request: Losing, attempt: Attempt, suspect: Suspect, gone: bool) -> None:
    now_s = plane.loop.time()
    death = attempt.link.died(attempt, now_s) if gone else None
    plane.suspects.tell(suspect, request, death, now_s)
