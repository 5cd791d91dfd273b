"""Each role, and each kind of token, can do what it should and nothing else: one table over all endpoints."""

import re
from collections.abc import Callable, Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from controlplane.accounts.access import ROLE_SCOPES, Role, Scope
from controlplane.accounts.models import User
from controlplane.accounts.permissions import required_scope

pytestmark = pytest.mark.django_db(databases="__all__")
METHODS = ("get", "post", "put", "patch", "delete")

READ, INSTANCES, POLICIES, TENANTS, ADMIN = (
    Scope.READ,
    Scope.INSTANCES,
    Scope.POLICIES,
    Scope.TENANTS,
    Scope.ADMIN,
)
TABLE: dict[str, dict[str, Scope]] = {
    "instances/": {"get": READ, "post": INSTANCES},
    "instances/<str:name>/": {"get": READ, "put": INSTANCES, "patch": INSTANCES, "delete": INSTANCES},
    "instances/<str:name>/heartbeat/": {"post": INSTANCES},
    "instances/<str:name>/pace/": {"get": READ},
    "instances/<str:name>/drain/": {"post": INSTANCES},
    "instances/<str:name>/undrain/": {"post": INSTANCES},
    "instances/<str:name>/maintenance/": {"post": INSTANCES},
    "instances/<str:name>/preemption/": {"post": INSTANCES},
    "decisions/": {"get": READ},
    "decisions/<path:request_id>/": {"get": READ},
    "policies/": {"get": READ, "post": POLICIES},
    "policies/<str:name>/": {"get": READ, "delete": POLICIES},
    "policies/<str:name>/preview/": {"post": READ},
    "policies/<str:name>/replay/": {"post": POLICIES},
    "policies/<str:name>/replay/<uuid:simulation_id>/": {"get": READ},
    "policies/<str:name>/diff/": {"get": READ},
    "policies/<str:name>/document/": {"get": READ, "put": POLICIES},
    "policy-presets/": {"get": READ},
    "policies/<str:name>/draft/": {"put": POLICIES, "delete": POLICIES},
    "policies/<str:name>/publish/": {"post": POLICIES},
    "policies/<str:name>/rollback/": {"post": POLICIES},
    "policies/<str:name>/revisions/": {"get": READ},
    "policies/<str:name>/revisions/<int:number>/": {"get": READ},
    "workloads/": {"get": READ, "post": POLICIES},
    "workloads/<str:name>/": {"get": READ, "patch": POLICIES, "delete": POLICIES},
    "workloads/<str:name>/shadow/": {"get": READ},
    "aliases/": {"get": READ},
    "aliases/<path:name>/": {"get": READ, "put": POLICIES, "delete": POLICIES},
    "router/admission/": {"get": READ, "put": POLICIES},
    "slos/": {"get": READ},
    "slos/<str:workload>/": {"get": READ, "put": POLICIES, "delete": POLICIES},
    "tenants/": {"get": READ, "post": TENANTS},
    "tenants/<str:name>/": {"get": READ, "patch": TENANTS, "delete": TENANTS},
    "tenants/<str:name>/keys/": {"get": READ, "post": TENANTS},
    "tenants/<str:name>/keys/<uuid:key_id>/": {"delete": TENANTS},
    "tenants/<str:name>/usage/": {"get": READ},
    "tokens/": {"get": ADMIN, "post": ADMIN},
    "tokens/<uuid:token_id>/": {"get": ADMIN, "delete": ADMIN},
    "people/": {"get": ADMIN, "post": ADMIN},
    "people/<str:username>/": {"get": ADMIN, "patch": ADMIN},
    "people/<str:username>/link/": {"post": ADMIN},
    "audit/": {"get": READ},
    "simulations/": {"get": READ, "post": POLICIES},
    "simulations/traces/": {"get": READ, "post": POLICIES},
    "simulations/traces/<uuid:trace_id>/": {"get": READ, "delete": POLICIES},
    "simulations/recordings/": {"get": READ, "post": POLICIES},
    "simulations/<uuid:simulation_id>/": {"get": READ, "delete": POLICIES},
    "simulations/<uuid:simulation_id>/cancel/": {"post": POLICIES},
    "simulations/<uuid:simulation_id>/result/": {"get": READ},
    "simulations/<uuid:simulation_id>/report.html/": {"get": READ},
    "simulations/<uuid:simulation_id>/draft/": {"post": POLICIES},
    "router/workers/": {"get": READ},
}
"""What each endpoint asks for; an endpoint that is missing here fails the first test."""
OTHERS = {"router/config/", "router/snapshots/"}
"""Plain asynchronous views; their own tests check their scope."""


def routes() -> Iterator[tuple[str, object]]:
    """Yield (pattern below /api/v1/, view class) of every endpoint."""

    def walk(patterns: list[object], prefix: str) -> Iterator[tuple[str, object]]:
        for entry in patterns:
            path = prefix + str(entry.pattern)  # type: ignore[attr-defined]
            if isinstance(entry, URLResolver):
                yield from walk(entry.url_patterns, path)
            elif isinstance(entry, URLPattern) and path.startswith("api/v1/"):
                yield path.removeprefix("api/v1/"), getattr(entry.callback, "view_class", entry.callback)

    yield from walk(get_resolver().url_patterns, "")


VIEWS = {path: view for path, view in routes() if path not in OTHERS}
OURS = [(path, method, scope) for path, methods in TABLE.items() for method, scope in methods.items()]
ROLES = [(role, path, method, scope) for role in Role for path, method, scope in OURS]


def filled(pattern: str) -> str:
    """Return a path with something for every parameter."""
    values = {"uuid": "00000000-0000-0000-0000-000000000000", "int": "1", "str": "nobody", "path": "some/body"}
    return "/api/v1/" + re.sub(r"<(\w+):\w+>", lambda found: values[found[1]], pattern)


def let_in(client: APIClient, path: str, method: str) -> bool:
    """Return whether an empty request gets past the door (whatever becomes of it then)."""
    status = getattr(client, method)(filled(path), {} if method != "get" else None).status_code
    assert status not in {401, 405}
    assert status < 500
    return bool(status != 403)


def test_the_table_is_about_every_endpoint_and_every_method() -> None:
    mine = {path for path in VIEWS if path.split("/")[0] in {entry.split("/")[0] for entry in TABLE}}
    assert mine == set(TABLE)
    for path, methods in TABLE.items():
        assert {m for m in METHODS if hasattr(VIEWS[path], m)} == set(methods), path


def test_endpoints_of_other_apps_name_their_scopes_too() -> None:
    for path, view in VIEWS.items():
        for method in METHODS:
            if hasattr(view, method):
                assert isinstance(required_scope(method.upper(), view), Scope), path


@pytest.mark.parametrize(("role", "path", "method", "scope"), ROLES)
def test_each_role_gets_in_where_it_should_and_nowhere_else(role: Role, path: str, method: str, scope: Scope) -> None:
    client = APIClient()
    client.force_login(User.objects.create_user("somebody", role))
    assert let_in(client, path, method) == (scope in ROLE_SCOPES[role])


@pytest.mark.parametrize("held", [s for s in Scope if s is not Scope.ADMIN])
def test_a_token_gets_in_where_its_scope_is_asked_for_and_nowhere_else(
    held: Scope, caller: Callable[..., APIClient]
) -> None:
    client = caller(held)
    for path, method, scope in OURS:
        assert let_in(client, path, method) == (scope is held), (path, method)


def test_strangers_get_in_nowhere() -> None:
    for path, methods in TABLE.items():
        for method in methods:
            assert getattr(APIClient(), method)(filled(path)).status_code == 401


def test_a_closed_account_gets_in_nowhere() -> None:
    user = User.objects.create_user("gone", Role.ADMIN)
    client = APIClient()
    client.force_login(user)
    User.objects.update(is_active=False)
    assert client.get("/api/v1/instances/").status_code == 401
