"""Real processes for end-to-end tests: started here, waited for by what they answer, ended by id."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.patience import PATIENCE_S

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]


def eventually(ask: Callable[[], T], what: str, patience_s: float = PATIENCE_S) -> T:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + patience_s
    while True:
        with suppress(httpx.TransportError):
            if answer := ask():
                return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s:.0f} s: {what}")
        time.sleep(0.05)


@contextmanager
def running(arguments: Sequence[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``python ARGUMENTS`` from the checkout until the block ends; its output goes to ``log``."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        try:
            yield process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes], patience_s: float = 60.0) -> int:
    """End a process by SIGTERM, then by SIGKILL, and return its exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


def run_text(arguments: Sequence[str], timeout_s: float = 600.0, **environment: str) -> str:
    """Run ``python ARGUMENTS`` to its end and return what it prints."""
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={**os.environ, **environment},
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    return finished.stdout


def run_json(arguments: Sequence[str], timeout_s: float = 600.0) -> dict[str, Any]:
    """Run ``python ARGUMENTS`` to its end and return the JSON object it prints."""
    answer: dict[str, Any] = json.loads(run_text(arguments, timeout_s))
    return answer


def is_ready(url: str) -> Callable[[], bool]:
    """Return a question: does this URL answer 200?"""
    return lambda: httpx.get(url, timeout=30).status_code == 200
