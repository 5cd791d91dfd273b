"""A Redis server for tests: the one that ``TEST_REDIS_URL`` names, else the local one on its usual port."""

import os

import pytest

DEFAULT_URL = "redis://127.0.0.1:6379/15"


def redis_url() -> str:
    """Return the address of a server that answers; skip the test, saying so, when there is none."""
    redis = pytest.importorskip("redis")
    url = os.environ.get("TEST_REDIS_URL", DEFAULT_URL)
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=60) as client:
            client.ping()
    except redis.RedisError as error:
        pytest.skip(f"no Redis answers: {error}; name one in TEST_REDIS_URL")
    return url
