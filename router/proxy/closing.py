"""The books of a request: what it reserves of its tenant's quota when it begins, and what is written when it ends."""

from typing import Protocol

from router.core.decision import Decision
from router.proxy.answer import Answer
from router.proxy.attempt import Attempt
from router.proxy.intake import Intake
from router.proxy.ledger import Ended, Outcome, record_end
from router.proxy.plane import Plane
from router.proxy.quotas import Reservation
from router.proxy.spans import RequestSpan
from router.proxy.usage import Usage


class Accounted(Protocol):
    """A request, as far as its books go. Times are monotonic seconds; ``first_byte_s`` is 0 when there was none."""

    answer: Answer | None
    attempts: int
    decision: Decision | None
    first_byte_s: float
    intake: Intake
    reservation: Reservation | None
    span: RequestSpan | None
    started_s: float


def reserve(plane: Plane, intake: Intake, tenant: str) -> Reservation:
    """Reserve what a request will probably use of its tenant's quota.

    :raises TooManyRequests: when that is more than is left.
    """
    output = plane.outputs.mean if intake.most_output is None else intake.most_output
    return plane.quotas.of(tenant).reserve(intake.request.prompt_tokens + round(output), plane.loop.time())


def close_books(plane: Plane, request: Accounted, outcome: Outcome, attempt: Attempt | None) -> None:
    """Count a request that has ended, record and trace it where that is asked for, and charge its tenant.

    :param attempt: where it was answered, not released yet.
    """
    intake = request.intake
    ended = Ended(intake, outcome, request.started_s, plane.loop.time())
    ended.first_token_s = request.first_byte_s
    ended.decision = request.decision
    ended.answer = request.answer
    if attempt is not None:
        ended.instance = attempt.link.instance
    usage = record_end(plane.stats.fresh, plane.calibration, ended)
    if attempt is not None and outcome is Outcome.OK:
        _learn_pace(attempt, ended, usage)
    if plane.answers is not None:
        plane.answers.ended(intake, ended, usage)
    if plane.recorder is not None:
        plane.recorder.note(intake, ended, usage)
    if request.span is not None:
        request.span.end(ended, request.attempts, usage)
    if request.reservation is not None:
        if usage is not None:
            plane.outputs.learn(usage.output_tokens)
        used = _charged_tokens(ended, usage, intake.request.prompt_tokens)
        request.reservation.settle(used, ended.ended_s)


def _learn_pace(attempt: Attempt, ended: Ended, usage: Usage | None) -> None:
    """Measure the instance by what the engine counted, or, without that, by the events of the stream."""
    if usage is None:
        uncached, output = None, 0 if ended.answer is None else ended.answer.events
    else:
        chosen = attempt.decision.chosen
        predicted = 0 if chosen is None else chosen.hit_tokens
        uncached = usage.prompt_tokens - (predicted if usage.cached_tokens is None else usage.cached_tokens)
        output = usage.output_tokens
    attempt.pace.learn(ended.ended_s, uncached, output)


def _charged_tokens(ended: Ended, usage: Usage | None, prompt_tokens: int) -> int:
    """Return the engine's own count, or, of an answer that was cut short, what had come of it."""
    if usage is not None:
        return usage.prompt_tokens + usage.output_tokens
    answer = ended.answer
    return 0 if answer is None or answer.status >= 400 else prompt_tokens + answer.events
