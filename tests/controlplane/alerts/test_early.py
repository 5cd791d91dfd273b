"""How soon a burst is noticed: from requests that a worker decides to a finding, on a clock that is moved by hand."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from random import Random

import pytest
from msgspec.structs import replace

from controlplane.alerts import early
from controlplane.alerts.early import look_early, looks_hot
from controlplane.alerts.evaluating import findings, limits_in_force
from controlplane.alerts.evaluators.hotspot_class import HotspotClassLimits, hotspot_class
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Channel, Delivery, Suspicion, TimelineEntry
from controlplane.alerts.selectors import watched_classes
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.alerts.services.raising import take_in
from controlplane.alerts.window import Window
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import BUCKET_S, ClassRollup, WorkerRollup, bucket_of_time
from controlplane.telemetry.rollup_writer import Reach, RollupWriter
from router.config import InstanceConfig
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.prefix.chain import pack
from router.core.request import Request
from router.state.fleet import Fleet
from tests.controlplane.alerts.conftest import OLGA
from tests.controlplane.alerts.rollups_of import instance
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker

START = 1_800_000_000
CLASS = "3f2a" * 4
INSTANCES = 8
RATE = 12
"""Requests a second of the calm traffic, and of the burst."""


class Worker:
    """Decides requests of a calm stream and of a burst, and reports four times a second; nothing waits for real."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self._fleet = Fleet(PrefixIndex())
        configs = [InstanceConfig(id=f"id-of-gpu-{i:02}", name=f"gpu-{i:02}", url="http://x") for i in range(INSTANCES)]
        self._fleet.apply(configs, clock.monotonic_s())
        self._fresh = count(1_000_000, 1000)
        self._facts = FakeWorker(INSTANCES, 0.0)
        self._rng = Random(0)

    def quarter(self, *, burst: bool, writer: RollupWriter) -> None:
        """Let a quarter of a second pass, and report."""
        for _ in range(RATE // 4):
            self._decide(list(range(start := next(self._fresh), start + 100)), 1600)
            if burst:
                self._decide([*range(1, 33), next(self._fresh)], 540)
        self._clock.advance(0.25)
        self._fleet.tick(self._clock.monotonic_s())
        hot = self._fleet.hotspots
        writer.add(
            replace(
                self._facts.step(),
                hot_arrivals=hot.arrivals,
                hot_window_whole=hot.covers_all(self._clock.monotonic_s()),
                hot_classes=self._fleet.hot_classes(),
            )
        )

    def _decide(self, blocks: Sequence[int], tokens: int) -> None:
        now_s, chain = self._clock.monotonic_s(), pack(blocks)
        decision = self._fleet.decide(Request("r", "m", tokens), chain, Policy(), self._rng, now_s)
        self._fleet.book(decision, chain, now_s).end()


@pytest.mark.parametrize("phase_s", range(BUCKET_S))
async def test_a_burst_is_found_within_twenty_seconds_whenever_it_begins(phase_s: int) -> None:
    clock = HandClock(unix_s=float(START))
    kept: list[WorkerRollup] = []

    def write(rows: Iterable[WorkerRollup], reach: Reach) -> None:
        kept.extend(rows)

    writer, worker = RollupWriter(clock, write, looks_hot), Worker(clock)
    for _ in range(4 * (80 + phase_s)):
        worker.quarter(burst=False, writer=writer)
    await writer.drained()
    assert not found_in(kept)
    began_s = clock.unix_s()
    while clock.unix_s() < began_s + 20:
        worker.quarter(burst=True, writer=writer)
        await writer.drained()
        if found_in(kept):
            break
    writer.close()
    assert clock.unix_s() - began_s < 13  # nine until the rule holds, at most two until it is written


def found_in(rows: Sequence[WorkerRollup]) -> bool:
    """Say what an early look finds in what was written so far."""
    end = max((row.bucket for row in rows), default=0) + BUCKET_S
    return any(True for _ in hotspot_class(Window(end=end, rollups=rows), HotspotClassLimits()))


def test_nobody_hurries_for_calm_traffic_or_a_window_that_is_not_whole() -> None:
    assert not looks_hot([])
    assert not looks_hot([hot_rollup(START, requests=20)])
    assert looks_hot([hot_rollup(START)])
    young = hot_rollup(START)
    young.hot_window_whole = False
    assert not looks_hot([young])


# -- the look at the rows --


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the time."""

    def set_to(moment: float) -> None:
        monkeypatch.setattr(early.time, "time", lambda: moment)

    return set_to


def hot_rollup(bucket: int, requests: int = 60) -> WorkerRollup:
    """One worker, four instances, and a class that the first of them holds."""
    row = WorkerRollup(worker="router-0", bucket=bucket, snapshots=10, hot_arrivals=100)
    row.instances = {f"id-gpu-{n}": instance(f"gpu-{n}") for n in range(4)}
    row.classes = {
        CLASS: ClassRollup(
            id=CLASS,
            model="m",
            prefix_tokens=512,
            requests=requests,
            holders=("id-gpu-0",),
            watched=False,
            mitigated=False,
        )
    }
    return row


@pytest.mark.django_db(databases=["default", "telemetry"])
def test_an_early_look_raises_watches_and_announces_once(
    now: Callable[[float], None], channel: Callable[..., Channel]
) -> None:
    channel()
    rollups.write_early([hot_rollup(START)])
    now(START + 3.2)
    look_early()
    look_early()
    alert = Alert.objects.get()
    assert (alert.kind, alert.labels) == ("hotspot_class", {"prefix_class": CLASS})
    assert watched_classes() == [CLASS]
    assert [row.occasion for row in Delivery.objects.all()] == ["firing"]
    told = [entry.what for entry in TimelineEntry.objects.order_by("pk")]
    assert told == ["fired", "notified"]


@pytest.mark.django_db(databases=["default", "telemetry"])
def test_an_early_look_at_calm_rows_changes_nothing(now: Callable[[float], None]) -> None:
    rollups.write_early([hot_rollup(START, requests=20)])
    now(START + 3.2)
    look_early()
    assert not Alert.objects.exists()
    assert not Suspicion.objects.exists()


@pytest.mark.django_db(databases=["default", "telemetry"])
def test_an_alert_that_was_raised_early_is_resolved_by_whole_buckets(now: Callable[[float], None]) -> None:
    rollups.write_early([hot_rollup(START)])
    now(START + 3.2)
    look_early()
    in_force = limits_in_force()
    for number in range(1, 7):
        end = START + number * BUCKET_S
        found = list(findings(Window(end=end, rollups=rollups.read(end, end)), in_force))
        assert Alert.objects.get().life is AlertState.FIRING
        take_in(end=end, findings=found)
    assert Alert.objects.get().life is AlertState.RESOLVED


@pytest.mark.django_db(databases=["default", "telemetry"])
def test_a_kind_that_is_switched_off_is_not_looked_for(now: Callable[[float], None]) -> None:
    set_kind(actor=OLGA, name="hotspot_class", enabled=False, limits={})
    rollups.write_early([hot_rollup(bucket_of_time(START))])
    now(START + 3.2)
    look_early()
    assert not Alert.objects.exists()
