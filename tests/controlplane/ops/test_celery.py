"""A real Celery worker on the filesystem broker: an instance that is registered gets probed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from kombu.exceptions import OperationalError

from controlplane.fleet.models import Instance
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.fleet.tasks import probe_instance
from router.core.instance import InstanceState
from tests.controlplane.conftest import ACTOR

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 60
pytestmark = pytest.mark.django_db(transaction=True)


WORKER = """
import sys
import django
django.setup()
from django.conf import settings
from controlplane.celery import app
settings.DATABASES["default"]["NAME"] = sys.argv[1]
quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
app.worker_main(["worker", "--pool", "solo", "--loglevel", "INFO", *quiet])
"""


@pytest.fixture
def real_broker() -> Path:
    """The folder of messages, in this test run's own data directory."""
    return Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_in"]))


@pytest.fixture
def worker(real_broker: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """A Celery worker process on the test's database and broker."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(connection.settings_dict["NAME"])],
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
            process.wait(LIMIT_S)
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
    await asyncio.to_thread(reader.join, LIMIT_S)
    assert any(text in line for line in lines), "".join(lines)


async def test_registering_rings_a_worker_that_probes(worker: subprocess.Popen[str]) -> None:
    await read_until(worker, " ready.")
    spec = InstanceSpec(name="gpu-1", url="http://127.0.0.1:1")
    instance = await sync_to_async(registration.register)(actor=ACTOR, spec=spec)
    async with asyncio.timeout(LIMIT_S):
        while (row := await Instance.objects.aget(pk=instance.pk)).probed_at is None:
            await asyncio.sleep(0.02)
    assert row.life is InstanceState.PROBING
    assert "Cannot talk to http://127.0.0.1:1" in row.probe_reasons[0]


def test_a_broker_that_is_away_stops_nobody(monkeypatch: pytest.MonkeyPatch, real_broker: Path) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("nobody there")

    monkeypatch.setattr(probe_instance, "apply_async", away)
    spec = InstanceSpec(name="gpu-1", url="http://127.0.0.1:1")
    assert registration.register(actor=ACTOR, spec=spec).life is InstanceState.REGISTERED
