"""A control plane, router workers and engines as real processes: what tests of the whole product stand on."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.load import Load
from tests.e2e.processes import eventually, is_ready, run_text, running
from tests.e2e.task_worker import running_tasks
from tests.patience import PATIENCE_S
from tests.ports import free_ports

ENGINES = 4
MODEL = "sim"
CHAT = "/v1/chat/completions"
LOAD_CLIENTS = 8


class Plant:
    """A control plane, two router workers and some engines; each process can be ended and started by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = {"POINTSMAN_DATA_DIR": str(folder / "data"), "DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        first = free_ports(ENGINES + 3)
        self.web, self.routers = first, (first + 1, first + 2)
        self.engines = tuple(range(first + 3, first + 3 + ENGINES))
        self.token_file = folder / "token"
        self.api = httpx.Client(base_url=self.web_url, timeout=PATIENCE_S)

    @property
    def web_url(self) -> str:
        return f"http://127.0.0.1:{self.web}"

    def router_url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.routers[number]}"

    def prepare(self) -> None:
        """Make the databases and a token."""
        for alias in ("default", "telemetry"):
            run_text(["manage.py", "migrate", "--database", alias, "-v0"], **self.data)
        create = ["manage.py", "token", "create", "--name", "test", "--scopes", "admin"]
        self.token_file.write_text(run_text(create, **self.data))
        self.api.headers["Authorization"] = f"Bearer {self.token_file.read_text().strip()}"

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the web process."""
        command = ["-m", "uvicorn", "controlplane.asgi:application", "--port", str(self.web), "--lifespan", "on"]
        with running([*command, "--log-level", "warning"], self.folder / "web.log", **self.data) as process:
            eventually(is_ready(f"{self.web_url}/readyz"), "the control plane is ready")
            yield process

    @contextmanager
    def routing(self, number: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run one router worker."""
        name = f"router-{number}"
        command = ["-m", "router.cli", "worker", "--name", name, "--listen", f"127.0.0.1:{self.routers[number]}"]
        command += ["--control", self.web_url, "--token-file", str(self.token_file)]
        command += ["--state-dir", str(self.folder / name)]
        with running(command, self.folder / f"{name}.log") as process:
            eventually(is_ready(f"{self.router_url(number)}/readyz"), f"{name} is ready")
            yield process

    def convergence(self) -> dict[str, Any]:
        """Return which worker runs what."""
        found: dict[str, Any] = self.api.get("/api/v1/router/workers").raise_for_status().json()
        return found

    def applied(self, revision: int) -> bool:
        """Return whether both workers run a revision or a later one."""
        live = [w for w in self.convergence()["workers"] if w["live"]]
        return len(live) == 2 and all(w["config_revision"] >= revision for w in live)

    def models(self, number: int) -> set[str]:
        """Return the names that a router offers."""
        listing = httpx.get(f"{self.router_url(number)}/v1/models", timeout=PATIENCE_S).raise_for_status().json()
        return {card["id"] for card in listing["data"]}

    def metric(self, number: int, series: str) -> float:
        """Return the value of a series of a router's metrics; 0 where there is none."""
        lines = httpx.get(f"{self.router_url(number)}/metrics", timeout=PATIENCE_S).text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} ")), 0.0)

    def load(self, number: int) -> Load:
        """Return a load on one router, to be run."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
        return Load(f"{self.router_url(number)}{CHAT}", body, LOAD_CLIENTS)

    def chat(self, number: int, **headers: str) -> httpx.Response:
        """Send one request."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
        return httpx.post(f"{self.router_url(number)}{CHAT}", json=body, headers=headers, timeout=PATIENCE_S)


@contextmanager
def small_fleet(plant: Plant) -> Iterator[subprocess.Popen[bytes]]:
    """Run one engine, the control plane (which is what the block gets) and its tasks, until the engine is routable."""
    engine = ["-m", "router.cli", "engine", "--port", str(plant.engines[0]), "--count", "1", "--model", MODEL]
    with (
        running(engine, plant.folder / "engines.log"),
        running_tasks(plant.folder / "celery.log", plant.data),
        plant.serving() as web,
    ):
        settings = {"url": f"http://127.0.0.1:{plant.engines[0]}"}
        eventually(is_ready(f"{settings['url']}/health"), "the engine is healthy")
        plant.api.put("/api/v1/instances/gpu-1/", json=settings).raise_for_status()
        eventually(
            lambda: plant.api.get("/api/v1/instances/gpu-1/").json()["state"] in {"warming", "ready"}, "it is routable"
        )
        yield web
