"""Every list costs the same number of queries however long it is."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tenants import create_key, create_tenant
from controlplane.accounts.services.tokens import create_token
from controlplane.fleet.models import Instance
from tests.controlplane.api.test_access import TABLE, filled

pytestmark = pytest.mark.django_db(databases="__all__")
MOST = 6
LISTS = sorted(path for path, methods in TABLE.items() if "get" in methods and ("<" not in path))


def grow(client: APIClient, register: Callable[..., Instance], first: int, count: int) -> None:
    """Make so many more of everything that a caller can make."""
    for number in range(first, first + count):
        register(f"gpu-{number}", f"http://10.0.{number}.1:8000")
        create_tenant(actor=SYSTEM, name=f"tenant-{number}")
        create_key(actor=SYSTEM, tenant="tenant-0", name=f"key-{number}")
        create_token(actor=SYSTEM, name=f"token-{number}", scopes=["read"])
        for path, body in (
            ("policies/", {"name": f"policy-{number}", "content": {"b": 1.5}}),
            ("workloads/", {"name": f"workload-{number}", "policy": "default"}),
            ("people/", {"username": f"person-{number}", "role": "viewer"}),
        ):
            answer = client.post(f"/api/v1/{path}", body)
            assert answer.status_code == 201, answer.json()
        answer = client.put(f"/api/v1/aliases/name-{number}/", {"targets": [{"model": "m"}, {"model": "n"}]})
        assert answer.status_code == 201, answer.json()
        answer = client.put(f"/api/v1/slos/workload-{number}/", {"ttft_s": 1.0})
        assert answer.status_code in {200, 201}, answer.json()


def cost(client: APIClient, path: str) -> int:
    """Return the queries of a second call: the first after a change may publish a configuration."""
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


def test_no_list_costs_more_when_it_is_longer(admin: APIClient, register: Callable[..., Instance]) -> None:
    grow(admin, register, 0, 2)
    paths = [filled(path) for path in LISTS] + ["/api/v1/tenants/tenant-0/keys/", "/api/v1/policies/default/revisions/"]
    before = {path: cost(admin, path) for path in paths}
    grow(admin, register, 2, 12)
    assert {path: cost(admin, path) for path in paths} == before
    assert max(before.values()) <= MOST, before
