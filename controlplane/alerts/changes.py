"""Saying that something about alerts changed: a number in the database, and a signal in this process.

Other processes see the number grow; this one need not wait for that.
"""

from django.db import transaction
from django.db.models import F
from django.dispatch import Signal

from controlplane.alerts.models import Change

_committed = Signal()
subscribe = _committed.connect


def alerts_changed() -> None:
    """Count one change, in the transaction of the change itself."""
    if not Change.objects.filter(pk=1).update(number=F("number") + 1):
        Change.objects.get_or_create(pk=1, defaults={"number": 1})
    transaction.on_commit(_tell)


def newest_change() -> int:
    """Return the number of the newest change (one cheap query)."""
    return Change.objects.filter(pk=1).values_list("number", flat=True).first() or 0


def _tell() -> None:
    _committed.send(sender=None)
