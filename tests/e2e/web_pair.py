"""Two web processes over one database and one Redis, each with a router worker of its own: what tests of several stand
on. A worker goes to the other web process while its own does not answer, as it would through a load balancer."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from websockets.sync.client import ClientConnection, connect

from controlplane.telemetry.frame import Frame
from tests.e2e.processes import eventually, is_ready, run_text, running
from tests.e2e.task_worker import running_tasks
from tests.fakes.relay import RelayInThread, relaying
from tests.patience import PATIENCE_S
from tests.ports import free_ports
from tests.redis_server import redis_url

MODEL = "sim"
CHAT = "/v1/chat/completions"


class WebPair:
    """Web processes and workers are numbered 0 and 1; worker n reports to web process n as long as that answers."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.environment = {
            "POINTSMAN_DATA_DIR": str(folder / "data"),
            "POINTSMAN_SECRET_KEY": secrets.token_urlsafe(48),
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "DATABASE_URL": database,
            "REDIS_URL": redis_url(),
        }
        first = free_ports(5)
        self.webs, self.routers, self.engine = (first, first + 1), (first + 2, first + 3), first + 4
        self.token_file = folder / "token"
        self.apis = [httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) for port in self.webs]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._running = {0: ExitStack(), 1: ExitStack()}
        self._relays: list[RelayInThread] = []
        self._cookie = ""

    @contextmanager
    def running(self) -> Iterator["WebPair"]:
        """Run everything: one engine, tasks, both web processes, both workers."""
        engine = ["-m", "router.cli", "engine", "--port", str(self.engine), "--count", "1", "--model", MODEL]
        with ExitStack() as stack:
            stack.enter_context(running(engine, self.folder / "engine.log"))
            run_text(["manage.py", "migrate", "-v0"], **self.environment)
            stack.enter_context(running_tasks(self.folder / "celery.log", self.environment))
            for number in (0, 1):
                stack.callback(self.end, number)
                self.begin(number)
                stack.callback(self.apis[number].close)
            self._sign_in()
            for number in (0, 1):
                stack.enter_context(self._routing(number))
            self._register()
            yield self

    def begin(self, number: int) -> None:
        """Start a web process."""
        command = ["-m", "uvicorn", "controlplane.asgi:application", "--port", str(self.webs[number])]
        command += ["--lifespan", "on", "--log-level", "warning", "--timeout-graceful-shutdown", "2"]
        process = running(command, self.folder / f"web-{number}.log", **self.environment)
        self._processes[number] = self._running[number].enter_context(process)

    def begin_again(self, number: int) -> None:
        """Start a web process again, and have its worker come back."""
        self.begin(number)
        self.wait_for(number)
        self._relays[number].close_connections()

    def wait_for(self, number: int) -> None:
        """Wait until a web process serves."""
        eventually(is_ready(f"http://127.0.0.1:{self.webs[number]}/readyz"), f"web process {number} serves")

    def end(self, number: int) -> None:
        """Tell a web process to end, and wait for that."""
        self._running[number].close()

    def kill(self, number: int) -> None:
        """Kill a web process."""
        self._processes[number].kill()
        self._processes[number].wait()

    def get(self, number: int, path: str) -> Any:
        """Ask a web process."""
        return self.apis[number].get(path).raise_for_status().json()

    def heard(self, number: int) -> dict[str, str]:
        """Return the workers that live in the eyes of a web process, and which one they report to."""
        found = self.get(number, "/api/v1/router/workers")
        return {one["name"]: one["heard_by"] for one in found["workers"] if one["live"]}

    def frame(self, number: int) -> Frame:
        """Return what the live page polls."""
        answer = self.apis[number].get("/live/frame/", headers={"Cookie": self._cookie}).raise_for_status()
        return msgspec.json.decode(answer.content, type=Frame)

    @contextmanager
    def socket(self, number: int, path: str) -> Iterator[ClientConnection]:
        """Open a browser's socket."""
        address = f"127.0.0.1:{self.webs[number]}"
        headers = {"Cookie": self._cookie}
        patience = {"open_timeout": PATIENCE_S, "ping_timeout": PATIENCE_S, "close_timeout": PATIENCE_S}
        url = f"ws://{address}{path}"
        with connect(url, origin=f"http://{address}", additional_headers=headers, **patience) as opened:
            yield opened

    def chat(self, number: int, **headers: str) -> httpx.Response:
        """Send one request to a worker."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
        return httpx.post(
            f"http://127.0.0.1:{self.routers[number]}{CHAT}", json=body, headers=headers, timeout=PATIENCE_S
        )

    @contextmanager
    def _routing(self, number: int) -> Iterator[None]:
        name = f"router-{number}"
        with relaying(self.webs[number], self.webs[1 - number]) as relay:
            self._relays.append(relay)
            command = ["-m", "router.cli", "worker", "--name", name, "--listen", f"127.0.0.1:{self.routers[number]}"]
            command += ["--control", f"http://127.0.0.1:{relay.port}", "--token-file", str(self.token_file)]
            with running(command, self.folder / f"{name}.log"):
                eventually(is_ready(f"http://127.0.0.1:{self.routers[number]}/livez"), f"{name} lives")
                yield

    def _register(self) -> None:
        url = f"http://127.0.0.1:{self.engine}"
        eventually(is_ready(f"{url}/health"), "the engine is healthy")
        self.apis[0].put("/api/v1/instances/gpu-1/", json={"url": url}).raise_for_status()
        eventually(lambda: self.get(1, "/api/v1/instances/gpu-1/")["state"] in {"warming", "ready"}, "it is routable")
        for number in (0, 1):
            eventually(lambda: len(self.heard(number)) == 2, f"web process {number} knows both workers")  # noqa: B023
            eventually(lambda: self.get(number, "/api/v1/router/workers")["applied"], "both run the newest")  # noqa: B023

    def _sign_in(self) -> None:
        """Make a token for the tests and the workers, and a browser's session; meanwhile the web processes start."""
        create = ["manage.py", "token", "create", "--name", "test", "--scopes", "admin"]
        self.token_file.write_text(run_text(create, **self.environment))
        link = run_text(["manage.py", "login-link"], **self.environment).strip()
        for number in (0, 1):
            self.apis[number].headers["Authorization"] = f"Bearer {self.token_file.read_text().strip()}"
            self.wait_for(number)
        answer = self.apis[0].get(urlsplit(link).path)
        self._cookie = f"pointsman_session={answer.cookies['pointsman_session']}"
