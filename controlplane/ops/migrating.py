"""Migrations when several processes of one installation start at the same time: one migrates, the others wait."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

_LOCK = 0x706F696E74736D6E
"""Of PostgreSQL's advisory locks ("pointsmn")."""


@contextmanager
def only_one_migrates(alias: str) -> Iterator[None]:
    """Wait until nobody else migrates a database. SQLite needs nothing: its data directory has one supervisor."""
    connection: BaseDatabaseWrapper = connections[alias]
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
