"""The seam between what changes the configuration and what publishes it.

A service that changed something that routers are told of calls :func:`configuration_changed` as the last thing in its
transaction. Who publishes (the bridge) subscribes, and works in that same transaction: the change and the revision
that carries it are committed together, or not at all. It must be last because publishing takes a lock that all writers
share.
"""

from django.dispatch import Signal

_changed = Signal()
subscribe = _changed.connect


def configuration_changed() -> None:
    """Say that rows behind the configuration document were changed in this transaction."""
    _changed.send(sender=None)
