"""What `pointsman up` runs, in which order, with which arguments."""

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from controlplane.ops.supervisor.address import Address
from controlplane.ops.supervisor.child import ChildSpec
from controlplane.ops.supervisor.readiness import LineSeen, UrlAnswers
from controlplane.ops.supervisor.supervisor import Step

_DEMO_RATE = "12"
_DEMO_WARMING_S = "20"
_PYTHON = (sys.executable, "-m")


@dataclass(frozen=True, slots=True)
class Demo:
    """A simulated fleet with traffic, whose engines publish KV events."""

    PORTS_AN_ENGINE: ClassVar = 3
    """Of its HTTP server, and of its two event sockets, which follow those of all engines."""

    host: str
    first_port: int
    engines: int
    register: Callable[[], Awaitable[None]]
    """Registers the engines; called once they answer."""

    @property
    def ports(self) -> range:
        """The ports of the engines."""
        return range(self.first_port, self.first_port + self.engines)


class Part(StrEnum):
    """A part of an installation that may run by itself."""

    WEB = "web"
    TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything listens and lives."""

    web: Address
    router: Address
    workers: int
    data_dir: Path
    token_file: Path
    demo: Demo | None = None
    record: bool = False
    """Whether workers record the last minutes of what they serve (lengths, hashes and times)."""
    web_processes: int = 1
    """They share the port, and hear one another through Redis."""
    only: Part | None = None
    """The part to run; None: all of them."""


def steps(layout: Layout) -> list[Step]:
    """Return the steps: web, router workers, tasks, and the demo's fleet and traffic."""
    web, tasks = Step((_web(layout),)), Step((_celery(layout), _beat(layout)))
    if layout.only is not None:
        return [web if layout.only is Part.WEB else tasks]
    plan = [web, Step(tuple(_worker(layout, number) for number in range(layout.workers))), tasks]
    if layout.demo is not None:
        plan.append(Step((_engines(layout.demo),), layout.demo.register))
        plan.append(Step((_traffic(layout),)))
    return plan


def _web(layout: Layout) -> ChildSpec:
    address = layout.web
    several = ("--workers", str(layout.web_processes)) if layout.web_processes > 1 else ()
    return ChildSpec(
        "web",
        (
            *(*_PYTHON, "uvicorn", "controlplane.asgi:application"),
            *("--host", address.host, "--port", str(address.port)),
            *("--ws", "websockets-sansio", "--lifespan", "on", "--no-access-log"),
            *("--timeout-graceful-shutdown", "2", "--log-level", "warning"),
            *several,
        ),
        readiness=lambda: UrlAnswers(f"{address.url}/readyz"),
        environment=_environment(layout),
    )


def _worker(layout: Layout, number: int) -> ChildSpec:
    name = f"router-{number}"
    state = layout.data_dir / "router" / name
    more: tuple[str, ...] = ("--reuse-port",) if layout.workers > 1 else ()
    if layout.record:
        more += ("--record-last", str(layout.data_dir / "recordings" / "last"))
    return ChildSpec(
        name,
        (
            *(*_PYTHON, "router.cli", "worker", "--name", name, "--listen", str(layout.router)),
            *("--control", layout.web.url, "--token-file", str(layout.token_file)),
            *("--state-dir", str(state), *more),
        ),
        readiness=lambda: UrlAnswers(f"{layout.router.url}/livez"),
        environment=_environment(layout),
    )


def _celery(layout: Layout) -> ChildSpec:
    return ChildSpec(
        "celery",
        (
            *(*_PYTHON, "celery", "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "4"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
        ),
        readiness=lambda: LineSeen(" ready."),
        environment=_environment(layout),
    )


def _beat(layout: Layout) -> ChildSpec:
    return ChildSpec(
        "beat",
        (*_PYTHON, "celery", "-A", "controlplane.celery", "beat", "--loglevel", "INFO", "--pidfile="),
        readiness=lambda: LineSeen("is starting"),
        environment=_environment(layout),
    )


def _engines(demo: Demo) -> ChildSpec:
    return ChildSpec(
        "engines",
        (
            *(*_PYTHON, "router.cli", "engine", "--host", demo.host, "--port", str(demo.first_port)),
            *("--count", str(demo.engines), "--kv-events-port", str(demo.ports.stop)),
        ),
        readiness=lambda: UrlAnswers(f"http://{Address(demo.host, demo.ports[-1])}/health"),
    )


def _traffic(layout: Layout) -> ChildSpec:
    return ChildSpec(
        "traffic",
        (
            *(*_PYTHON, "router.cli", "replay", "--generate", "chatbot", "--loop"),
            *("--rate", _DEMO_RATE, "--target", layout.router.url),
        ),
    )


def _environment(layout: Layout) -> dict[str, str]:
    found = {"DJANGO_SETTINGS_MODULE": "controlplane.settings", "POINTSMAN_DATA_DIR": str(layout.data_dir)}
    if "POINTSMAN_ROUTER_URL" not in os.environ:
        found["POINTSMAN_ROUTER_URL"] = layout.router.url
    if "POINTSMAN_WEB_URL" not in os.environ:
        found["POINTSMAN_WEB_URL"] = layout.web.url
    if "POINTSMAN_ALLOWED_HOSTS" not in os.environ and not layout.web.is_wildcard:
        found["POINTSMAN_ALLOWED_HOSTS"] = ",".join({"localhost", "127.0.0.1", "[::1]", _host(layout.web)})
    found["POINTSMAN_RECORD"] = "yes" if layout.record else "no"
    if layout.demo is not None and "POINTSMAN_WARMING_S" not in os.environ:
        found["POINTSMAN_WARMING_S"] = _DEMO_WARMING_S
    return found


def _host(address: Address) -> str:
    return f"[{address.host}]" if ":" in address.host else address.host
