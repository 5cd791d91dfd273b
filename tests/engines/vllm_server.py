"""Real vLLM servers with the tiny model, each on a core of its own, that publish their KV events."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.processes import stop
from tests.engines.tiny_vllm_model import KV_BYTES_A_TOKEN, LONGEST, write_tiny_vllm_model
from tests.engines.vllm_environment import vllm_python
from tests.ports import free_ports

MODEL = "tiny"
BLOCK_TOKENS = 32
KV_TOKENS = 16_384
START_S = 600.0
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_SERVER_DEV_MODE": "1",
}


@dataclass
class VllmServer:
    """One server; it can be killed and started again at the same ports."""

    folder: Path
    python: Path
    name: str
    port: int
    events_port: int
    core: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def events(self) -> str:
        """Return where its events are published."""
        return f"tcp://127.0.0.1:{self.events_port}"

    @property
    def replay(self) -> str:
        """Return where they can be asked for again."""
        return f"tcp://127.0.0.1:{self.events_port + 1}"

    def start(self) -> None:
        """Start it; :meth:`wait` until it serves."""
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": f"tcp://*:{self.events_port}",
            "replay_endpoint": self.replay,
            "topic": "kv",
        }
        options = {
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--model": str(self.folder / "model"),
            "--served-model-name": MODEL,
            "--load-format": "dummy",
            "--dtype": "bfloat16",
            "--max-model-len": str(LONGEST),
            "--block-size": str(BLOCK_TOKENS),
            "--kv-cache-memory-bytes": str(KV_TOKENS * KV_BYTES_A_TOKEN),
            "--max-num-seqs": "16",
            "--kv-events-config": json.dumps(events),
        }
        switches = ["--enable-prefix-caching", "--enable-prompt-tokens-details", "--enforce-eager"]
        words = [word for pair in options.items() for word in pair]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.python), "-m", "vllm.entrypoints.openai.api_server", *words, *switches],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **_ENVIRONMENT, "VLLM_CPU_OMP_THREADS_BIND": str(self.core)},
            )

    def wait(self) -> None:
        """Wait until it serves.

        :raises AssertionError: with the end of its log, when it does not.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            time.sleep(0.5)
        log = (self.folder / f"{self.name}.log").read_text(errors="replace")
        raise AssertionError(f"{self.name} does not serve:\n{log[-3000:]}")

    def reset_cache(self) -> None:
        """Have it forget its prefix cache."""
        httpx.post(f"{self.url}/reset_prefix_cache", timeout=20).raise_for_status()

    def kill(self) -> None:
        """Kill it with the engine's processes, which would outlive it and keep their ports."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        """End it, and whatever is left of it."""
        if self.process is not None:
            stop(self.process)
            self.kill()


@contextmanager
def vllm_servers(folder: Path, count: int = 2) -> Iterator[list[VllmServer]]:
    """Run servers named vllm-0, vllm-1, ...; skips where vLLM cannot be had."""
    python = vllm_python()
    write_tiny_vllm_model(folder / "model")
    first = free_ports(3 * count)
    cores = sorted(os.sched_getaffinity(0))
    servers = [
        VllmServer(folder, python, f"vllm-{n}", first + n, first + count + 2 * n, cores[n % len(cores)])
        for n in range(count)
    ]
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.end()
