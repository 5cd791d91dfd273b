"""Health, metrics, static files, documentation of the API."""

import pytest
from django.test import AsyncClient, Client
from prometheus_client.parser import text_string_to_metric_families

from controlplane.accounts.access import Role
from controlplane.accounts.models import User

pytestmark = pytest.mark.django_db(databases="__all__")


def test_alive_and_ready(client: Client) -> None:
    assert client.get("/livez").content == b"ok\n"
    assert client.get("/readyz").json() == {"ready": True, "faults": {}}


def test_not_ready_says_why(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.ops.health._database_fault", lambda alias: "no such table")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["faults"]["default"] == "no such table"


def test_metrics_are_prometheus_text(client: Client) -> None:
    families = {f.name: f for f in text_string_to_metric_families(client.get("/metrics").content.decode())}
    assert {"pointsman_instances", "pointsman_config_revision", "pointsman_router_workers"} <= set(families)
    assert len(families["pointsman_instances"].samples) == 8


def test_the_documentation_runs_under_the_content_policy(client: Client) -> None:
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert b"<script>" not in page.content
    assert b"https://" not in page.content
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.get("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js").status_code == 200


def test_an_unknown_path_of_the_api_is_a_problem(client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    for method in (client.get, strict.post, strict.delete):
        answer = method("/api/v1/nothing/")
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


def test_options_are_not_answered(client: Client) -> None:
    """The framework's own answer would look up an object that need not exist."""
    client.force_login(User.objects.create_user("ada", Role.ADMIN))
    assert client.options("/api/v1/slos/nobody/").status_code == 405


async def test_static_files_are_served_without_threads_for_other_requests() -> None:
    client = AsyncClient()
    found = await client.get("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css")
    assert found.status_code == 200
    assert found.headers["Content-Type"].startswith("text/css")
    assert (await client.get("/static/missing.css")).status_code == 404
