"""The fixtures of the browser tests: a served web process, somebody signed in, a Chromium."""

from tests.dashboards.conftest import (
    chromium,
    fresh_hub,
    person,
    pytest_collection_modifyitems,
    session_cookie,
    shared_chromium,
    signed_in,
    web,
)

__all__ = [
    "chromium",
    "fresh_hub",
    "person",
    "pytest_collection_modifyitems",
    "session_cookie",
    "shared_chromium",
    "signed_in",
    "web",
]
