"""Silences: made with a mandatory end, ended early."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.matchers import Matcher, dump_matchers
from controlplane.alerts.models import Silence
from controlplane.errors import Invalid, NotFound

LONGEST = timedelta(days=30)


@transaction.atomic
def silence(
    *,
    actor: Actor,
    matchers: Sequence[Matcher],
    ends_at: datetime,
    comment: str,
    starts_at: datetime | None = None,
) -> Silence:
    """Silence alerts that match until an end.

    :raises Invalid: without matchers or comment, or for an end that has passed or is far away.
    """
    now = timezone.now()
    begin = max(starts_at or now, now)
    faults: dict[str, list[str]] = {}
    if not matchers:
        faults["matchers"] = ["At least one is needed: a silence of everything hides everything."]
    if ends_at <= begin:
        faults["ends_at"] = ["It must be in the future, and after the beginning."]
    elif ends_at > begin + LONGEST:
        faults["ends_at"] = [f"It may be at most {LONGEST.days} days after the beginning."]
    if not comment.strip():
        faults["comment"] = ["Say why, so that others understand the silence."]
    if faults:
        raise Invalid(faults)
    made = Silence.objects.create(
        matchers=dump_matchers(matchers),
        comment=comment.strip()[:500],
        created_by=actor.label,
        starts_at=begin,
        ends_at=ends_at,
    )
    record(actor=actor, action="silence.create", target=_target(made), after=describe(made), message=made.comment)
    alerts_changed()
    return made


@transaction.atomic
def end_silence(*, actor: Actor, silence_id: UUID | str) -> Silence:
    """End a silence now; ending one that is over changes nothing.

    :raises NotFound: when there is none.
    """
    found = Silence.objects.select_for_update().filter(pk=silence_id).first()
    if found is None:
        raise NotFound("There is no such silence.")
    now = timezone.now()
    if found.ends_at <= now:
        return found
    before = describe(found)
    found.ends_at = now
    found.starts_at = min(found.starts_at, now)
    found.save(update_fields=["ends_at", "starts_at"])
    record(actor=actor, action="silence.end", target=_target(found), before=before, after=describe(found))
    alerts_changed()
    return found


def describe(silence: Silence) -> dict[str, Any]:
    """Return what the audit log keeps of a silence."""
    return {
        "matchers": [str(matcher) for matcher in silence.conditions],
        "starts_at": silence.starts_at.isoformat(),
        "ends_at": silence.ends_at.isoformat(),
        "comment": silence.comment,
    }


def _target(silence: Silence) -> tuple[str, object, str]:
    return ("silence", silence.pk, str(silence)[:200])
