"""Publishing configuration documents: numbered one after the other, in the transaction of the change itself."""

import hashlib
from typing import Any

from django.db import transaction
from msgspec.structs import replace

from controlplane.bridge.document import build_document
from controlplane.bridge.models import ConfigLock, ConfigRevision
from controlplane.bridge.watcher import WATCHER
from router.config import dump_config

KEPT = 200
"""Newest documents that stay; older ones are pruned."""


@transaction.atomic
def publish(**_: Any) -> ConfigRevision:
    """Publish what the rows stand for now, and return the newest revision; nothing is made when nothing differs."""
    _lock()
    newest = ConfigRevision.objects.first()
    document = build_document(0)
    digest = hashlib.sha256(dump_config(document)).hexdigest()
    if newest is not None and newest.digest == digest:
        return newest
    number = 1 if newest is None else newest.number + 1
    body = dump_config(replace(document, revision=number))
    made = ConfigRevision.objects.create(number=number, digest=digest, body=body)
    ConfigRevision.objects.filter(number__lte=number - KEPT).delete()
    transaction.on_commit(WATCHER.wake)
    return made


def current() -> ConfigRevision:
    """Return the newest revision, published first if there is none."""
    return ConfigRevision.objects.first() or publish()


def newest_number() -> int:
    """Return the number of the newest revision (one cheap query)."""
    number = ConfigRevision.objects.values_list("number", flat=True).first()
    return publish().number if number is None else number


def _lock() -> None:
    """Wait until no other transaction publishes: what is read afterwards contains what they committed."""
    ConfigLock.objects.get_or_create(pk=1)
    ConfigLock.objects.select_for_update().get(pk=1)
