"""Ringing Celery: a task is wanted now. When nobody hears, a scheduled sweep does it a little later.

Tasks are rung for by name, so that services know nothing of the tasks that call them.

A change must never fail because the broker is away, so what goes wrong here is logged and forgotten.
"""

import logging

from celery import current_app
from django.db import transaction

logger = logging.getLogger(__name__)
_FORGET_AFTER_S = 60
"""A message that nobody took for so long is dropped: the sweep has long done its work."""


def ring_on_commit(task_name: str, *args: object) -> None:
    """Send a task once the present transaction is committed."""
    transaction.on_commit(lambda: ring(task_name, *args))


def ring(task_name: str, *args: object) -> None:
    """Send a task now."""
    try:
        current_app.send_task(task_name, args=args, retry=False, expires=_FORGET_AFTER_S, ignore_result=True)
    except Exception as error:  # whatever a broker's client raises
        logger.warning("could not ring for %s, the next sweep will do it: %s", task_name, error)
