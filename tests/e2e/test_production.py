"""`pointsman up` as it is deployed: PostgreSQL, Redis, production settings, two workers, two web processes, a proxy
that speaks TLS."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.e2e.processes import eventually, is_ready, run_text, running, stop
from tests.patience import PATIENCE_S
from tests.ports import free_ports
from tests.postgres_server import new_database
from tests.redis_server import redis_url

HOST = "pointsman.example.org"
WORKERS = 2


class Deployed(msgspec.Struct, frozen=True):
    """A running deployment, as the proxy in front of it sees it."""

    api: httpx.Client
    router: str
    engine: str
    log: Path


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """Make a database of its own for one test."""
    with new_database() as address:
        yield address


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("deployed")
    first = free_ports(3)
    web, router, engine = (f"127.0.0.1:{port}" for port in range(first, first + 3))
    key = folder / "secret_key"
    key.write_text(secrets.token_urlsafe(48))
    environment = {
        "POINTSMAN_PRODUCTION": "yes",
        "POINTSMAN_BEHIND_TLS_PROXY": "yes",
        "POINTSMAN_ALLOWED_HOSTS": f"{HOST},localhost,127.0.0.1",
        "POINTSMAN_TRUSTED_ORIGINS": f"https://{HOST}",
        "POINTSMAN_PUBLIC_URL": f"https://{HOST}",
        "POINTSMAN_SECRET_KEY_FILE": str(key),
        "POINTSMAN_DATA_DIR": str(folder / "data"),
        "DATABASE_URL": database,
        "REDIS_URL": redis_url(),
    }
    up = ["manage.py", "up", "--web", web, "--router", router, "--workers", str(WORKERS), "--web-processes", "2"]
    engines = ["-m", "router.cli", "engine", "--port", engine.rpartition(":")[2], "--model", "sim"]
    log = folder / "up.log"
    with ExitStack() as stack:
        stack.enter_context(running(engines, folder / "engine.log"))
        process = stack.enter_context(running(up, log, **environment))
        eventually(lambda: "Pointsman is running" in log.read_text(), "everything runs")
        token = run_text(["manage.py", "token", "create", "--name", "test", "--scopes", "admin"], **environment)
        headers = {"Authorization": f"Bearer {token.strip()}", "Host": HOST, "X-Forwarded-Proto": "https"}
        api = stack.enter_context(httpx.Client(base_url=f"http://{web}", headers=headers, timeout=PATIENCE_S))
        yield Deployed(api, f"http://{router}", f"http://{engine}", log)
        assert stop(process, PATIENCE_S) == 0


def test_an_engine_is_probed_by_tasks_over_redis_and_served_by_every_worker(deployed: Deployed) -> None:
    eventually(is_ready(f"{deployed.engine}/health"), "the engine is healthy")
    deployed.api.put("/api/v1/instances/gpu-1/", json={"url": deployed.engine}).raise_for_status()
    instance = "/api/v1/instances/gpu-1/"
    eventually(
        lambda: deployed.api.get(instance).json()["state"] in ("warming", "ready"), "tasks have probed the engine"
    )
    eventually(lambda: deployed.api.get("/api/v1/router/workers").json()["applied"], "every worker knows it")
    for _ in range(10):  # whichever web process answers
        url = deployed.api.base_url.join("/api/v1/router/workers")
        found = httpx.get(url, headers=deployed.api.headers, timeout=PATIENCE_S).json()
        assert len(found["workers"]) == WORKERS
        assert found["whole"]
    body = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    for _ in range(10):  # each on a connection of its own, so that both workers are asked
        assert httpx.post(f"{deployed.router}/v1/chat/completions", json=body, timeout=PATIENCE_S).status_code == 200
    assert "starting it again" not in deployed.log.read_text(), "a process has crashed"


def test_pages_are_for_https_and_known_hosts_only(deployed: Deployed) -> None:
    plain = deployed.api.get("/", headers={"X-Forwarded-Proto": "http"})
    assert (plain.status_code, plain.headers["location"]) == (301, f"https://{HOST}/")
    assert deployed.api.get("/login/").headers["strict-transport-security"]
    assert deployed.api.get("/", headers={"Host": "evil.example"}).status_code == 400
