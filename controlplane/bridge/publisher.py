"""Publishing configuration documents: numbered one after the other, in the transaction of the change itself."""

import hashlib
from typing import Any

from django.db import transaction
from msgspec.structs import replace

from controlplane.bridge.document import build_document
from controlplane.bridge.models import ConfigLock, ConfigRevision
from controlplane.bridge.watcher import WATCHER
from controlplane.publication import Publication
from controlplane.sealing import CannotOpen, seal
from router.config import dump_config

KEPT = 200
"""Newest documents that stay; older ones are pruned."""


@transaction.atomic
def publish(anew: bool = False, **_: Any) -> ConfigRevision:
    """Publish what the rows stand for now, and return the newest revision.

    :param anew: make a revision also when its content is that of the newest one.
    """
    _lock()
    newest = ConfigRevision.objects.first()
    document = build_document(0)
    digest = hashlib.sha256(dump_config(document)).hexdigest()
    if newest is not None and newest.digest == digest and not anew:
        return newest
    number = 1 if newest is None else newest.number + 1
    body = dump_config(replace(document, revision=number))
    made = ConfigRevision.objects.create(number=number, digest=digest, sealed_body=seal(body))
    ConfigRevision.objects.filter(number__lte=number - KEPT).delete()
    transaction.on_commit(WATCHER.wake)
    return made


def current() -> tuple[int, bytes]:
    """Return the newest revision and its document; published first if there is none, or it cannot be opened."""
    newest = ConfigRevision.objects.first() or publish()
    try:
        return newest.number, newest.body
    except CannotOpen:
        made = publish(anew=True)
        return made.number, made.body


def newest_number() -> int:
    """Return the number of the newest revision (one cheap query)."""
    number = ConfigRevision.objects.values_list("number", flat=True).first()
    return publish().number if number is None else number


def newest_publication() -> Publication | None:
    """Return the number and age of the newest revision; None before the first."""
    newest = ConfigRevision.objects.values_list("number", "created_at").first()
    return None if newest is None else Publication(*newest)


def _lock() -> None:
    """Wait until no other transaction publishes: what is read afterwards contains what they committed."""
    ConfigLock.objects.get_or_create(pk=1)
    ConfigLock.objects.select_for_update().get(pk=1)
