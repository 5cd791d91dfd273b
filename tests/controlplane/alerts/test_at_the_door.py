"""What a real worker keeps waiting and refuses is an alert, which is over by itself when the door is clear."""

import asyncio
import time
from collections.abc import Callable

import msgspec
import pytest
from asgiref.sync import sync_to_async

from controlplane.alerts import evaluating
from controlplane.alerts.evaluating import evaluate_newest
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert
from controlplane.alerts.window import newest_end
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup
from router.snapshot import parse_snapshot
from tests.router.proxy.harness import Proxy, proxying
from tests.router.proxy.test_admission import Gated, admit, snapshot, until

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the time."""
    return lambda moment: monkeypatch.setattr(evaluating.time, "time", lambda: moment)


async def _reported(proxy: Proxy, bucket: int) -> None:
    """Have the worker's snapshot, as it goes over the wire, be all that was heard in a bucket."""
    told = parse_snapshot(msgspec.json.encode(snapshot(proxy)))
    rollup = WorkerRollup(worker="router-0", bucket=bucket)
    rollup.add(told)
    await sync_to_async(rollups.write)([rollup])


@sync_to_async
def _states() -> list[tuple[str, str, str]]:
    found = Alert.objects.filter(kind="admission")
    return [(alert.state, alert.labels["workload"], alert.summary) for alert in found]


async def test_what_waits_and_what_is_refused_at_a_real_door_is_an_alert_until_it_is_clear(
    now: Callable[[float], None],
) -> None:
    bucket = newest_end(time.time())
    async with Gated() as engine, proxying(engine) as proxy:
        admit(proxy, limit=1, queue_requests=4)
        asking = [asyncio.create_task(proxy.chat()) for _ in range(5)]
        await until(proxy, queued=4)
        refused = [(await proxy.chat()).code for _ in range(12)]
        assert set(refused) == {"queue_full"}
        for _ in range(2):
            await _reported(proxy, bucket)
            bucket += BUCKET_S
            now(bucket + 0.5)
            await sync_to_async(evaluate_newest)()
        ((state, workload, summary),) = await _states()
        assert (state, workload) == (AlertState.FIRING, "default")
        assert "4 requests of default wait at the door" in summary
        assert "12 of default were refused" in summary
        for _ in range(5):
            engine.gate.release()
        assert {answer.status for answer in await asyncio.gather(*asking)} == {200}
        for _ in range(10):
            await _reported(proxy, bucket)
            bucket += BUCKET_S
            now(bucket + 0.5)
            await sync_to_async(evaluate_newest)()
    assert [state for state, _, _ in await _states()] == [AlertState.RESOLVED]
