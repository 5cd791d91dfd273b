"""Ringing Celery: a task is wanted now. When nobody hears, a scheduled sweep does it a little later.

A change must never fail because the broker is away, so what goes wrong here is logged and forgotten.
"""

import logging
from typing import Any

from django.db import transaction

logger = logging.getLogger(__name__)
_FORGET_AFTER_S = 60
"""A message that nobody took for so long is dropped: the sweep has long done its work."""


def ring_on_commit(task: Any, *args: object) -> None:
    """Send a task once the present transaction is committed."""
    transaction.on_commit(lambda: ring(task, *args))


def ring(task: Any, *args: object) -> None:
    """Send a task now."""
    try:
        task.apply_async(args=args, retry=False, expires=_FORGET_AFTER_S, ignore_result=True)
    except Exception as error:  # whatever a broker's client raises
        logger.warning("could not ring for %s, the next sweep will do it: %s", task.name, error)
