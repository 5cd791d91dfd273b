"""A PostgreSQL server for tests: the one that ``TEST_POSTGRES_URL`` names, else the local one on its usual port."""

import os
from functools import cache

import pytest

DEFAULT_URL = "postgres://postgres@127.0.0.1:5432/postgres"


def postgres_url() -> str:
    """Return the address of a server that answers; skip the test, saying so, when there is none."""
    url = os.environ.get("TEST_POSTGRES_URL", DEFAULT_URL)
    if reason := _fault(url):
        pytest.skip(f"no PostgreSQL answers: {reason}; name one in TEST_POSTGRES_URL")
    return url


@cache
def _fault(url: str) -> str | None:
    psycopg = pytest.importorskip("psycopg")
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[0]
    return None
