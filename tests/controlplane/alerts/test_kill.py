"""``kill -9`` in the middle: nothing is lost, and nothing is sent twice with two meanings."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from controlplane.alerts.models import Alert, ChannelKind, Delivery, DeliveryState, Evaluation, Suspicion
from controlplane.alerts.services import handling, raising
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.channels import ChannelSpec, create_channel
from controlplane.alerts.services.raising import raise_alert, take_in
from controlplane.alerts.tasks import deliver
from controlplane.celery import app
from tests.controlplane.alerts.celery_process import CeleryProcess, broker_options
from tests.controlplane.alerts.conftest import OLGA, finding
from tests.controlplane.own_thread import in_own_thread
from tests.fakes.receiver import Got, Receiver
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
ALERTS = 8


@pytest.fixture
def broker_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for messages."""
    folder = tmp_path / "broker"
    monkeypatch.setitem(app.conf, "broker_transport_options", broker_options(folder))
    return folder


@pytest.fixture
def workers(broker_folder: Path) -> Iterator[list[CeleryProcess]]:
    """Workers that are ended with the test."""
    started: list[CeleryProcess] = []
    yield started
    for worker in started:
        worker.stop()


async def start(workers: list[CeleryProcess], folder: Path) -> CeleryProcess:
    """Start a worker and ring for it."""
    worker = CeleryProcess(folder)
    workers.append(worker)
    await worker.ready()
    await in_own_thread(ring)
    return worker


def ring() -> None:
    """Have a worker look at the outbox."""
    with app.connection_for_write() as connection:
        deliver.apply_async(connection=connection)


def fill_the_outbox(url: str) -> None:
    """Announce alerts to a webhook; half of them are over before anybody was told."""
    spec = ChannelSpec(name="hook", kind=ChannelKind.WEBHOOK, settings={"url": url})
    create_channel(actor=OLGA, spec=spec)
    alerts = [raise_alert(finding=finding(f"gpu-{number}")) for number in range(ALERTS)]
    announce_due()
    for alert in alerts[: ALERTS // 2]:
        handling.resolve(actor=OLGA, alert_id=alert.pk)


async def claims_end() -> None:
    """Let the time pass for which a killed worker holds up what it was sending."""
    ended = await Delivery.objects.filter(claim__isnull=False).aupdate(claimed_until=timezone.now())
    assert ended


async def all_delivered() -> None:
    """Ring, as the schedule does, until nothing waits."""
    async with asyncio.timeout(PATIENCE_S):
        while await Delivery.objects.filter(state=DeliveryState.PENDING).aexists():
            await in_own_thread(ring)
            await asyncio.sleep(0.2)


async def test_celery_killed_twice_while_sending_loses_nothing(
    workers: list[CeleryProcess], broker_folder: Path
) -> None:
    answers: list[int | None] = [200, 200, 200, None, None, None, 200, 200, None, 200]
    async with Receiver(answers) as receiver:
        await sync_to_async(fill_the_outbox)(receiver.url)
        first = await start(workers, broker_folder)
        await receiver.arrivals(6)  # three of them hang now
        first.kill()
        await claims_end()
        second = await start(workers, broker_folder)
        await receiver.arrivals(9)
        second.kill()
        await claims_end()
        await start(workers, broker_folder)
        await all_delivered()
        check_what_arrived(receiver.got)
    rows = [row async for row in Delivery.objects.all()]
    assert len(rows) == ALERTS + ALERTS // 2
    assert {row.state for row in rows} == {DeliveryState.DELIVERED}
    assert any(row.attempts > 1 for row in rows)


def check_what_arrived(got: list[Got]) -> None:
    """Everything arrived; what arrived twice says the same twice; nothing is told of an end before its beginning."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    statuses: dict[str, list[str]] = defaultdict(list)
    for one in got:
        bodies[one.headers["idempotency-key"]].add(one.body)
        body = json.loads(one.body)
        statuses[body["groupKey"]].append(body["status"])
    assert len(bodies) == ALERTS + ALERTS // 2
    assert all(len(same) == 1 for same in bodies.values())
    assert len(statuses) == ALERTS
    for told in statuses.values():
        assert told == sorted(told)  # "firing" before "resolved", and never after it
        assert "firing" in told


def test_an_evaluation_that_is_cut_off_leaves_nothing_and_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    take_in(end=10, findings=[finding("gpu-1")])
    with monkeypatch.context() as patched:
        patched.setattr(raising, "_begin", cut_off)
        with pytest.raises(KeyboardInterrupt):
            take_in(end=20, findings=[finding("gpu-1"), finding("gpu-2")])
    assert Evaluation.objects.get().bucket == 10
    assert Suspicion.objects.get().seen == 1
    assert take_in(end=20, findings=[finding("gpu-1"), finding("gpu-2")]) is not None
    assert Alert.objects.get().labels == {"instance": "gpu-1"}
