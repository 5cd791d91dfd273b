"""Real llama.cpp servers with the tiny model, and a router worker in front of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from router.config import ConfigDocument, InstanceConfig, dump_config
from tests.e2e.processes import eventually, is_ready, running
from tests.engines.tiny_gguf import write_tiny_gguf
from tests.patience import PATIENCE_S
from tests.ports import free_ports

MODEL = "tiny"


class Served(msgspec.Struct, frozen=True):
    """Where a router and the llama.cpp servers behind it listen; instances are named llama-0, llama-1, ..."""

    router: str
    engines: tuple[str, ...]
    pids: tuple[int, ...]
    """Of the servers."""

    def post(self, path: str, **body: Any) -> httpx.Response:
        """Post to the router."""
        return httpx.post(f"{self.router}{path}", json=body, timeout=PATIENCE_S)

    def chat(self, *texts: str, **fields: Any) -> httpx.Response:
        """Send a chat through the router; ``texts`` are the user's and the assistant's in turn."""
        return self.post("/v1/chat/completions", **chat_body(*texts, **fields))

    def series(self, url: str | None = None) -> dict[str, float]:
        """Return the metrics of the router, or of an engine, by series."""
        lines = httpx.get(f"{url or self.router}/metrics", timeout=PATIENCE_S).text.splitlines()
        return {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines if not x.startswith("#"))}

    def engine_of(self, answer: httpx.Response) -> str:
        """Return the URL of the engine that an answer came from."""
        return self.engines[int(answer.headers["x-pointsman-instance"].rpartition("-")[2])]


def chat_body(*texts: str, **fields: Any) -> dict[str, Any]:
    """Return a chat in which the user and the assistant speak in turn."""
    messages = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]
    return {"model": MODEL, "messages": messages, "max_tokens": 4, "temperature": 0, **fields}


@contextmanager
def llama_cpp(folder: Path, *, engines: int = 2) -> Iterator[Served]:
    """Run llama.cpp servers and one router worker in front of them."""
    model = folder / "tiny.gguf"
    write_tiny_gguf(model)
    first = free_ports(engines + 1)
    urls = tuple(f"http://127.0.0.1:{first + n}" for n in range(engines))
    router = f"127.0.0.1:{first + engines}"
    config = folder / "config.json"
    config.write_bytes(dump_config(_document(urls)))
    with ExitStack() as processes:
        pids: list[int] = []
        for n in range(engines):
            server = ["-m", "tests.engines.llama_server", str(model), str(first + n)]
            pids.append(processes.enter_context(running(server, folder / f"llama-{n}.log")).pid)
        for url in urls:
            eventually(is_ready(f"{url}/health"), f"{url} is healthy")
        worker = ["--listen", router, "--config", str(config), "--state-dir", str(folder / "router"), "--poll", "0.2"]
        processes.enter_context(running(["-m", "router.cli", "worker", *worker], folder / "router.log"))
        eventually(is_ready(f"http://{router}/readyz"), "the router is ready")
        yield Served(f"http://{router}", urls, tuple(pids))


def _document(urls: tuple[str, ...]) -> ConfigDocument:
    instances = (
        InstanceConfig(id=f"llama-{n}", name=f"llama-{n}", url=url, models=(MODEL,), kv_block_tokens=1)
        for n, url in enumerate(urls)
    )
    return ConfigDocument(revision=1, instances=tuple(instances))
