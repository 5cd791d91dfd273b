"""A real Celery worker on the test's database and broker, as a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from django.db import connection

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]

WORKER = """
import sys
import django
django.setup()
from django.conf import settings
from controlplane.celery import app
settings.DATABASES["default"]["NAME"] = sys.argv[1]
quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
app.worker_main(["worker", "--pool", sys.argv[2], "--loglevel", "INFO", *quiet])
"""


@contextmanager
def running_worker(pool: str = "solo") -> Iterator[subprocess.Popen[str]]:
    """Run a worker; it is ended afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(connection.settings_dict["NAME"]), pool],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            if process.stdout is not None:
                process.stdout.close()


async def read_until(process: subprocess.Popen[str], text: str) -> None:
    """Read the worker's lines until one holds a text."""
    lines: list[str] = []

    def read() -> None:
        for line in process.stdout or ():
            lines.append(line)
            if text in line:
                return

    reader = Thread(target=read, daemon=True)
    reader.start()
    await asyncio.to_thread(reader.join, PATIENCE_S)
    assert any(text in line for line in lines), "".join(lines)
