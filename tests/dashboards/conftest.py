"""A fresh hub for every test, people to sign in, and, for browser tests, a served web process and a Chromium."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from django.conf import settings
from django.test import Client
from playwright.async_api import Browser, expect

from controlplane.accounts.access import Role
from controlplane.accounts.models import User
from controlplane.telemetry import worker_book
from controlplane.telemetry.hub import Hub, hub
from tests.dashboards.chromium import running_chromium
from tests.dashboards.web_process import WebProcess
from tests.patience import PATIENCE_MS

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def fresh_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The process's hub, with nothing in it; a worker that it heard once does not fall silent on a slow machine."""
    monkeypatch.setattr(worker_book, "LIVE_FOR_S", worker_book.FORGET_AFTER_S)
    hub.cache_clear()
    yield hub()
    hub.cache_clear()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold back messages to Celery."""
    monkeypatch.setattr("controlplane.fleet.doorbell.ring", lambda task, *args: None)


@pytest.fixture
def person(transactional_db: None) -> User:
    """Somebody who may do everything."""
    return User.objects.create_user("ada", Role.ADMIN, None)


@pytest.fixture
def signed_in(person: User) -> Client:
    """A client with that person's session."""
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def viewer(transactional_db: None) -> Client:
    """A client of somebody who may only look."""
    client = Client()
    client.force_login(User.objects.create_user("vera", Role.VIEWER, None))
    return client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all browser tests share one event loop, and so one browser: starting one takes longer than most tests."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def web(signed_in: Client, fresh_hub: Hub) -> AsyncIterator[WebProcess]:
    """The web process, listening."""
    process = WebProcess()
    await process.start()
    yield process
    await process.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_chromium() -> AsyncIterator[Browser]:
    """A browser that runs until the last test."""
    async with running_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def chromium(shared_chromium: Browser) -> AsyncIterator[Browser]:
    """The browser, without anything that an earlier test opened."""
    yield shared_chromium
    for context in shared_chromium.contexts:
        await context.close()


@pytest.fixture
def session_cookie(signed_in: Client, web: WebProcess) -> dict[str, Any]:
    """The session, as a browser context takes it."""
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": signed_in.cookies[name].value, "url": web.url}
