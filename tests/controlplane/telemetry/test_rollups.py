"""Roll-ups: ten seconds of snapshots, written once, read by whoever evaluates."""

import asyncio
from collections.abc import Sequence

import pytest
from asgiref.sync import sync_to_async
from msgspec.structs import replace

from controlplane.telemetry import rollups
from controlplane.telemetry.models import RollupRow
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup, bucket_of_time
from controlplane.telemetry.rollup_writer import EARLY_EVERY_S, Reach, RollupWriter
from router.snapshot import HotClassSample, TenantSample
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S

START = 1_800_000_000.0
HOT = HotClassSample(
    id="3f2a" * 4,
    model="m",
    prefix_tokens=512,
    requests=50,
    error=4,
    hits=40,
    share=0.5,
    holders=("id-of-gpu-00",),
    ready=2,
    consecutive=3,
    watched=True,
    mitigated=False,
    mitigated_requests=0,
)


class Kept:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.rollups: list[WorkerRollup] = []
        self.reaches: list[Reach] = []

    def __call__(self, rows: Sequence[WorkerRollup], reach: Reach) -> None:
        self.rollups.extend(rows)
        self.reaches.append(reach)


def test_snapshots_of_one_bucket_add_up() -> None:
    worker = FakeWorker(2, 100.0)
    rollup = WorkerRollup(worker="router-0", bucket=0)
    snapshots = [worker.step() for _ in range(8)]
    for snapshot in snapshots:
        rollup.add(snapshot)
    for identity, row in rollup.instances.items():
        samples = [sample for snapshot in snapshots for sample in snapshot.instances if sample.id == identity]
        assert row.samples == 8
        assert row.requests == sum(sample.requests for sample in samples) == sum(row.score.values())
        assert row.bs_sum == sum(sample.bs for sample in samples)
        assert row.own_sum == sum(sample.own_requests for sample in samples)
    assert rollup.workloads["coder"].requests == sum(row.requests for row in rollup.instances.values())


def test_a_silent_engine_has_no_report_and_no_mean_of_zero() -> None:
    (snapshot,) = [FakeWorker(1).step()]
    silent = replace(snapshot.instances[0], reported_running=None, reported_waiting=None, reported_age_s=None)
    rollup = WorkerRollup(worker="router-0", bucket=0)
    rollup.add(replace(snapshot, instances=(silent,)))
    (row,) = rollup.instances.values()
    assert (row.reported_samples, row.youngest_report_age_s) == (0, None)


def test_classes_are_those_last_reported_and_never_too_many() -> None:
    snapshot = FakeWorker(1).step()
    rollup = WorkerRollup(worker="router-0", bucket=0)
    rollup.add(replace(snapshot, hot_arrivals=90, hot_classes=(replace(HOT, requests=10, error=0),)))
    rollup.add(replace(snapshot, hot_arrivals=100, hot_classes=(HOT,)))
    (row,) = rollup.classes.values()
    assert (rollup.hot_arrivals, row.requests, row.holders) == (100, 46, ("id-of-gpu-00",))


def test_tenants_add_up() -> None:
    snapshot = FakeWorker(1).step()
    usage = TenantSample(tenant="acme", workload="coder", requests=3, refused=2, prompt_tokens=10, output_tokens=10)
    rollup = WorkerRollup(worker="router-0", bucket=0)
    for _ in range(2):
        rollup.add(replace(snapshot, tenants=(usage, usage)))
    assert (rollup.tenants["acme"].requests, rollup.tenants["acme"].refused) == (12, 8)


async def test_a_bucket_is_written_once_when_the_next_begins() -> None:
    clock, kept = HandClock(unix_s=START), Kept()
    writer = RollupWriter(clock, kept)
    worker = FakeWorker(2)
    for _ in range(3 * BUCKET_S):
        writer.add(worker.step())
        clock.advance(1.0)
    await writer.drained()
    writer.close()
    assert [rollup.bucket for rollup in kept.rollups] == [START, START + 10]
    assert [rollup.snapshots for rollup in kept.rollups] == [10, 10]


async def test_a_bucket_is_written_although_nothing_follows() -> None:
    clock, kept = HandClock(unix_s=START + BUCKET_S - 0.01), Kept()
    writer = RollupWriter(clock, kept)
    written = asyncio.Event()
    loop = asyncio.get_running_loop()

    def write(full: Sequence[WorkerRollup], reach: Reach) -> None:
        kept(full, reach)
        loop.call_soon_threadsafe(written.set)

    writer = RollupWriter(clock, write)
    writer.add(FakeWorker(1).step())
    await asyncio.wait_for(written.wait(), PATIENCE_S)
    assert [rollup.bucket for rollup in kept.rollups] == [START]


async def test_a_database_that_is_away_costs_one_bucket_and_nothing_else() -> None:
    clock, kept, failures = HandClock(unix_s=START), Kept(), [OSError("disk full")]

    def write(full: Sequence[WorkerRollup], reach: Reach) -> None:
        if failures:
            raise failures.pop()
        kept(full, reach)

    writer = RollupWriter(clock, write)
    worker = FakeWorker(1)
    for _ in range(3):
        writer.add(worker.step())
        clock.advance(BUCKET_S)
    await writer.drained()
    writer.close()
    assert [rollup.bucket for rollup in kept.rollups] == [START + 10]


async def test_what_cannot_wait_is_written_early_and_again_when_it_is_whole() -> None:
    clock, kept = HandClock(unix_s=START), Kept()
    writer = RollupWriter(clock, kept, lambda filling: filling[0].snapshots >= 3)
    worker = FakeWorker(2)
    for _ in range(BUCKET_S + 1):
        writer.add(worker.step())
        clock.advance(1.0)
    await writer.drained()
    writer.close()
    early = [row.snapshots for row, reach in zip(kept.rollups, kept.reaches, strict=True) if reach is Reach.EARLY]
    assert early == list(range(3, BUCKET_S + 1, int(EARLY_EVERY_S)))
    assert kept.reaches[-1] is Reach.WHOLE
    assert kept.rollups[-1].snapshots == BUCKET_S


@pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])
def test_a_whole_roll_up_takes_the_place_of_an_early_one() -> None:
    bucket = bucket_of_time(START)
    early, whole = rollup_at(bucket), rollup_at(bucket)
    whole.snapshots = 40
    rollups.write_early([early])
    assert rollups.read(bucket, bucket) == [early]
    rollups.write([whole])
    assert rollups.read(bucket, bucket) == [whole]


def rollup_at(bucket: int, worker: str = "router-0") -> WorkerRollup:
    """Return a roll-up with something in it."""
    made = WorkerRollup(worker=worker, bucket=bucket)
    made.add(FakeWorker(2, 50.0, name=worker).step())
    return made


@pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])
async def test_rows_come_back_as_they_were_oldest_first_and_old_ones_go() -> None:
    heard: list[None] = []

    def listener(**_: object) -> None:
        heard.append(None)

    rollups.subscribe(listener)
    now = bucket_of_time(START)
    old, first, second = rollup_at(now - rollups.KEPT_S - 10), rollup_at(now), rollup_at(now + 10)
    for one in (old, second, first, second):  # the last one again, as after a lost answer
        await sync_to_async(rollups.write)([one])
    assert await sync_to_async(rollups.read)(0, now + 10) == [first, second]
    assert await sync_to_async(rollups.read)(now + 10, now + 10) == [second]
    assert await RollupRow.objects.acount() == 2
    assert len(heard) == 4
