"""Database work in a thread of its own, as Celery's tasks do theirs."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


async def in_own_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in another thread and close the connections that it opened there: the thread does not outlive it."""

    def closing() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(closing)
