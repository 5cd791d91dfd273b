"""Publishing configuration documents, numbered one after the other.

A change counts up in its own transaction (:func:`note_change`); the document is built when somebody wants the newest
one and it is missing. What is published is locked meanwhile, so it holds everything that was committed before.
"""

import hashlib
import zlib
from typing import Any

from django.db import transaction
from django.db.models import F
from msgspec.structs import replace

from controlplane.bridge.document import build_document
from controlplane.bridge.models import ConfigRevision, ConfigState
from controlplane.bridge.watcher import WATCHER
from controlplane.publication import Publication
from controlplane.sealing import CannotOpen, seal
from router.config import dump_config

KEPT = 50
"""Newest documents that stay; older ones are pruned."""
_FAST = 1


def note_change(**_: Any) -> None:
    """Count a change of what the document is made of, in the transaction of that change, and wake who waits for it."""
    if not ConfigState.objects.filter(pk=1).update(changes=F("changes") + 1):
        ConfigState.objects.get_or_create(pk=1)
    transaction.on_commit(WATCHER.wake)


@transaction.atomic
def publish(*, anew: bool = False) -> int:
    """Publish what the rows stand for now, and return the number of the newest revision.

    :param anew: make a revision also when its content is that of the newest one.
    """
    ConfigState.objects.get_or_create(pk=1)
    state = ConfigState.objects.select_for_update().get(pk=1)
    document = build_document(0)
    digest = hashlib.sha256(dump_config(document)).hexdigest()
    newest = ConfigRevision.objects.defer("sealed_body").first()
    if newest is None or newest.digest != digest or anew:
        state.number = 1 if newest is None else newest.number + 1
        body = seal(zlib.compress(dump_config(replace(document, revision=state.number)), _FAST))
        ConfigRevision.objects.create(number=state.number, digest=digest, sealed_body=body)
        ConfigRevision.objects.filter(number__lte=state.number - KEPT).delete()
    state.published_changes = state.changes
    state.save(update_fields=["published_changes", "number"])
    return state.number


def current() -> tuple[int, bytes]:
    """Return the newest revision and its document."""
    number = newest_number()
    try:
        return number, ConfigRevision.objects.get(pk=number).body
    except CannotOpen:
        number = publish(anew=True)
        return number, ConfigRevision.objects.get(pk=number).body


def newest_number() -> int:
    """Return the number of the newest revision: one cheap query, where nothing is to be published first."""
    state = ConfigState.objects.filter(pk=1).first()
    if state is None or state.changes != state.published_changes:
        return publish()
    return state.number


def newest_publication() -> Publication:
    """Return the number and the time of the newest revision."""
    number = newest_number()
    return Publication(number, ConfigRevision.objects.values_list("created_at", flat=True).get(pk=number))
