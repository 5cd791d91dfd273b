"""A router worker over simulated engines, without a control plane: what data-plane tests stand on."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import msgspec

from router.config import ConfigDocument, InstanceConfig, WorkloadConfig, dump_config
from router.core.hardware_profiles import DEFAULT_PROFILE
from router.core.policy import Policy
from tests.e2e.processes import eventually, is_ready, running
from tests.patience import PATIENCE_S
from tests.ports import free_ports

MODEL = "demo"


class Stack(msgspec.Struct, frozen=True):
    """Where the parts of a running stack listen."""

    router: str
    engines: tuple[str, ...]

    def chat(self, text: str, *, max_tokens: int = 4, **fields: object) -> httpx.Response:
        """Send one chat completion through the router."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": max_tokens, **fields}
        return httpx.post(f"{self.router}/v1/chat/completions", json=body, timeout=PATIENCE_S)

    def metrics(self) -> dict[str, float]:
        """Return the router's metrics by series."""
        lines = httpx.get(f"{self.router}/metrics", timeout=PATIENCE_S).text.splitlines()
        return {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines if not x.startswith("#"))}


def document(engines: Mapping[str, str], policies: tuple[Policy, ...] = ()) -> ConfigDocument:
    """Configure instances by name and URL, with a workload for each further policy, named like it."""
    return ConfigDocument(
        revision=1,
        instances=tuple(InstanceConfig(id=name, name=name, url=url, models=(MODEL,)) for name, url in engines.items()),
        policies=(Policy(), *policies),
        workloads=(
            WorkloadConfig(name="default", policy="default"),
            *(WorkloadConfig(name=policy.name, policy=policy.name) for policy in policies),
        ),
    )


@contextmanager
def stack(
    folder: Path,
    *,
    engines: int = 8,
    speedup: float = 1.0,
    policies: tuple[Policy, ...] = (),
    profile: str = DEFAULT_PROFILE,
) -> Iterator[Stack]:
    """Run ``engines`` simulated engines and one router worker in front of them."""
    first = free_ports(engines + 1)
    urls = {f"gpu-{i}": f"http://127.0.0.1:{first + i}" for i in range(engines)}
    config = folder / "config.json"
    config.write_bytes(dump_config(document(urls, policies)))
    router = f"127.0.0.1:{first + engines}"
    with ExitStack() as processes:
        fleet = ["--port", str(first), "--count", str(engines), "--speedup", str(speedup), "--model", MODEL]
        fleet += ["--profile", profile]
        processes.enter_context(running(["-m", "router.cli", "engine", *fleet], folder / "engines.log"))
        for url in urls.values():
            eventually(is_ready(f"{url}/health"), f"{url} is healthy")
        worker = ["--listen", router, "--config", str(config), "--state-dir", str(folder / "router")]
        processes.enter_context(running(["-m", "router.cli", "worker", *worker], folder / "router.log"))
        eventually(is_ready(f"http://{router}/readyz"), "the router is ready")
        yield Stack(f"http://{router}", tuple(urls.values()))
