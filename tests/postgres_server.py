"""A PostgreSQL server for tests: the one that ``TEST_POSTGRES_URL`` names, else the local one on its usual port."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

DEFAULT_URL = "postgres://postgres@127.0.0.1:5432/postgres"


def postgres_url() -> str:
    """Return the address of a server that answers; skip the test, saying so, when there is none."""
    url = os.environ.get("TEST_POSTGRES_URL", DEFAULT_URL)
    if reason := _fault(url):
        pytest.skip(f"no PostgreSQL answers: {reason}; name one in TEST_POSTGRES_URL")
    return url


@contextmanager
def new_database() -> Iterator[str]:
    """Make a database, yield its address, and drop it; skips the test when there is no server."""
    server = postgres_url()
    import psycopg
    from psycopg import sql

    name = f"pointsman_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield f"{server.rpartition('/')[0]}/{name}"
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@cache
def _fault(url: str) -> str | None:
    psycopg = pytest.importorskip("psycopg")
    try:
        psycopg.connect(url, connect_timeout=60).close()
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[0]
    return None
