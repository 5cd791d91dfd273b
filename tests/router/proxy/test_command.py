"""The worker as a process: it starts, tells what is wrong, and stops on a signal."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from router.config import ConfigDocument, dump_config
from tests.e2e.processes import ROOT, eventually, is_ready, running
from tests.patience import PATIENCE_S
from tests.ports import free_ports

WORKER = ["-m", "router.cli", "worker"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(dump_config(ConfigDocument(revision=1)))
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_cleanly_on_a_signal(config: Path, tmp_path: Path, number: signal.Signals) -> None:
    port = free_ports(1)
    arguments = ["--listen", f"127.0.0.1:{port}", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    log = tmp_path / "worker.log"
    with running([*WORKER, *arguments], log) as process:
        eventually(is_ready(f"http://127.0.0.1:{port}/readyz"), "the worker is ready")
        assert httpx.get(f"http://127.0.0.1:{port}/livez", timeout=PATIENCE_S).text == "ok\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
    assert '"event": "stopping"' in log.read_text()
    assert (tmp_path / "state" / "config.json").exists()


def worker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *WORKER, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_a_port_that_is_taken_is_said_plainly(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = worker("--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--config", str(config))
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "nowhere"],
        ["--control", "ftp://x"],
        ["--control", "http://127.0.0.1:1", "--token-file", "/does/not/exist"],
    ],
)
def test_unusable_arguments_are_refused(config: Path, arguments: list[str]) -> None:
    source = [] if "--control" in arguments else ["--config", str(config)]
    done = worker(*arguments, *source)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
