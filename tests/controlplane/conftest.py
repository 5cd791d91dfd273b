"""Callers with scopes, a fresh hub, and engines that answer probes."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from rest_framework.test import APIClient

from controlplane.accounts.access import Role, Scope
from controlplane.accounts.actor import SYSTEM, Actor
from controlplane.accounts.models import User
from controlplane.accounts.services.tokens import create_token
from controlplane.fleet.models import Instance
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.telemetry import worker_book
from controlplane.telemetry.hub import Hub, hub

ACTOR = Actor("tester")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Close every alias's connection at the end: PostgreSQL drops no database that anyone is still in."""
    yield
    connections.close_all()


@pytest.fixture
def caller(db: None) -> Callable[..., APIClient]:
    """Make a client that carries a token with the scopes given."""

    def make(*scopes: Scope) -> APIClient:
        _, text = create_token(actor=SYSTEM, name="test", scopes=[scope.value for scope in scopes])
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        return client

    return make


@pytest.fixture
def admin(caller: Callable[..., APIClient]) -> APIClient:
    """A caller who may do everything."""
    return caller(Scope.ADMIN)


@pytest.fixture
def operator_user(db: None) -> User:
    """A person with the role operator."""
    return User.objects.create_user("olga", Role.OPERATOR, "correct horse battery")


@pytest.fixture
def fresh_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The process's hub, with nothing in it; a worker that it heard once does not fall silent on a slow machine."""
    monkeypatch.setattr(worker_book, "LIVE_FOR_S", worker_book.FORGET_AFTER_S)
    hub.cache_clear()
    yield hub()
    hub.cache_clear()


@pytest.fixture
def register(db: None) -> Callable[..., Instance]:
    """Register an instance by its services."""

    def make(name: str = "gpu-1", url: str = "http://10.0.0.1:8000", **settings: object) -> Instance:
        spec = InstanceSpec(name=name, url=url, **settings)  # type: ignore[arg-type]
        return registration.register(actor=ACTOR, spec=spec)

    return make


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[tuple[str, tuple[object, ...]]]:
    """Hold back messages to Celery, and keep what would have been sent."""
    sent: list[tuple[str, tuple[object, ...]]] = []
    if "real_broker" not in request.fixturenames:
        monkeypatch.setattr("controlplane.fleet.doorbell.ring", lambda name, *args: sent.append((name, args)))
    return sent


@pytest.fixture
async def closed_connections() -> AsyncIterator[None]:
    """Close what asynchronous code opened in asgiref's thread."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture(autouse=True)
def no_open_connections(request: pytest.FixtureRequest) -> None:
    """Have every asynchronous test close its connections."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("closed_connections")


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """Hash passwords with something quick: how well they are kept is Django's business, and tested there."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
