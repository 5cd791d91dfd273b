"""Questions about requests, and which workers have answered them.

A question is a row, so that it reaches every worker through whichever web process that one reports to; it is open for a
few seconds. Replies to snapshots carry it, snapshots carry the answers.
"""

import re
from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone

from controlplane.decisions.keeping import keep
from controlplane.decisions.models import Answer, Question
from controlplane.errors import Conflict, Invalid
from router.snapshot import Explained

OPEN_FOR = timedelta(seconds=3)
MOST_OPEN = 32
_FORGOTTEN_AFTER = timedelta(minutes=1)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@/+=-]{1,128}")
"""What a worker takes from ``x-request-id``; its own ids fit too."""


def is_request_id(text: str) -> bool:
    """Return whether a request can have this id."""
    return _REQUEST_ID.fullmatch(text) is not None


def ask(request_id: str) -> Question:
    """Ask every worker about a request; whoever was asked just now and has answered is asked again.

    A client may have used the id again since, so what was answered before may not be the newest.

    :raises Invalid: for what is no request id.
    :raises Conflict: when too many questions are open.
    """
    if not is_request_id(request_id):
        raise Invalid({"request_id": ["A request id has up to 128 letters, digits and any of ._:@/+=- in it."]})
    now = timezone.now()
    Question.objects.filter(asked_at__lt=now - _FORGOTTEN_AFTER).delete()
    opened = Question.objects.filter(asked_at__gt=now - OPEN_FOR)
    if opened.exclude(request_id=request_id).count() >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} requests are being asked about at this moment; try again in a few seconds.")
    question, made = Question.objects.update_or_create(request_id=request_id, defaults={"asked_at": now})
    if not made:
        question.answers.all().delete()
    return question


def any_open() -> bool:
    """Return whether anything is being asked."""
    return Question.objects.filter(asked_at__gt=timezone.now() - OPEN_FOR).exists()


def open_for(worker: str) -> tuple[str, ...]:
    """Return the requests that a worker is still to be asked about."""
    opened = Question.objects.filter(asked_at__gt=timezone.now() - OPEN_FOR)
    return tuple(opened.exclude(answers__worker=worker).order_by("asked_at").values_list("request_id", flat=True))


def answered_by(question: Question) -> frozenset[str]:
    """Return the workers that have answered."""
    return frozenset(question.answers.values_list("worker", flat=True))


def take_answers(worker: str, answers: Iterable[Explained]) -> None:
    """Keep what a worker found, and note that it has answered."""
    for answer in answers:
        question = Question.objects.filter(request_id=answer.request_id).first()
        if question is None:
            continue  # nobody waits any more
        if answer.decision is not None and answer.decision.request_id == answer.request_id:
            keep(answer.decision)
        Answer.objects.bulk_create([Answer(question=question, worker=worker)], ignore_conflicts=True)
