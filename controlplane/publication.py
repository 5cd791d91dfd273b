"""The seam between what changes the configuration and what publishes it.

A service that changed something that routers are told of calls :func:`configuration_changed` as the last thing in its
transaction. Who publishes (the bridge) subscribes, and notes the change in that same transaction: both are committed
together, or not at all. It must be last because it takes a lock that all writers share until they commit.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from django.dispatch import Signal

_changed = Signal()
subscribe = _changed.connect


def configuration_changed() -> None:
    """Say that rows behind the configuration document were changed in this transaction."""
    _changed.send(sender=None)


class Publication(NamedTuple):
    """The newest revision of the configuration document, and when it was made."""

    revision: int
    at: datetime


_sources: list[Callable[[], Publication | None]] = []


def provide_newest(source: Callable[[], Publication | None]) -> None:
    """Name the function that knows the newest publication (the bridge does, once)."""
    _sources[:] = [source]


def newest_publication() -> Publication | None:
    """Return the newest publication; None before the first."""
    return _sources[0]() if _sources else None
