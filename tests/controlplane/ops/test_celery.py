"""A real Celery worker on the filesystem broker: an instance that is registered gets probed."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from kombu.exceptions import OperationalError

from controlplane.fleet.models import Instance
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.fleet.tasks import probe_instance
from router.core.instance import InstanceState
from tests.controlplane.celery_worker import read_until, running_worker
from tests.controlplane.conftest import ACTOR
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def real_broker() -> Path:
    """The folder of messages, in this test run's own data directory."""
    return Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_in"]))


@pytest.fixture
def worker(real_broker: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """A Celery worker process on the test's database and broker."""
    with running_worker() as process:
        yield process


async def test_registering_rings_a_worker_that_probes(worker: subprocess.Popen[str]) -> None:
    await read_until(worker, " ready.")
    spec = InstanceSpec(name="gpu-1", url="http://127.0.0.1:1")
    instance = await sync_to_async(registration.register)(actor=ACTOR, spec=spec)
    async with asyncio.timeout(PATIENCE_S):
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
