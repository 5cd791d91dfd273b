"""From snapshots to frames."""

import msgspec
import pytest
from msgspec.structs import replace

from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.traffic import WINDOW_S
from controlplane.telemetry.worker_book import LIVE_FOR_S
from router.core.histogram import lower_edge
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker

TICK_S = 0.25


def batched(flat: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def hub(clock: HandClock) -> Hub:
    return Hub(clock)


def drive(hub: Hub, clock: HandClock, *workers: FakeWorker, seconds: float) -> int:
    """Feed snapshots for a while; return the requests they told of."""
    requests = 0
    for _ in range(round(seconds / TICK_S)):
        clock.advance(TICK_S)
        for worker in workers:
            snapshot = worker.step(TICK_S)
            assert hub.accept(snapshot)
            requests += sum(instance.requests for instance in snapshot.instances)
    return requests


def test_an_empty_frame_says_that_nobody_said(hub: Hub) -> None:
    frame = hub.frame()
    assert frame.instances == ()
    assert frame.decision is None
    assert frame.headline.requests_per_s is None
    assert frame.headline.hit_ratio is None
    assert frame.headline.load_max_over_mean is None
    assert frame.headline.score.p95 is None


def test_every_request_is_counted_once_everywhere(hub: Hub, clock: HandClock) -> None:
    requests = drive(hub, clock, FakeWorker(8, 40.0), seconds=30)
    frame = hub.frame()
    assert frame.headline.requests == requests
    assert sum(row.requests for row in frame.instances) == requests
    assert sum(column.requests for column in frame.columns) == requests
    assert sum(row.requests for row in frame.workloads) == requests
    assert sum(sum(row.score_counts[1::2]) for row in frame.instances) == requests
    assert sum(sum(column.score_counts[1::2]) for column in frame.columns) == requests


def test_two_workers_add_up(hub: Hub, clock: HandClock) -> None:
    workers = [FakeWorker(8, 20.0, name=f"router-{i}", seed=i) for i in range(2)]
    requests = drive(hub, clock, *workers, seconds=20)
    frame = hub.frame()
    assert frame.headline.requests == requests
    assert frame.headline.requests_per_s == pytest.approx(40.0, rel=0.25)
    assert len(frame.instances) == 8
    assert frame.headline.in_flight == sum(row.bs for row in frame.instances)


def test_p95_lies_where_the_histogram_says(hub: Hub, clock: HandClock) -> None:
    drive(hub, clock, FakeWorker(8, 40.0), seconds=30)
    frame = hub.frame()
    p95 = frame.headline.score.p95
    assert p95 is not None
    flat = [row.score_counts for row in frame.instances]
    below = sum(
        count for row in flat for bucket, count in zip(row[::2], row[1::2], strict=True) if lower_edge(bucket) <= p95
    )
    assert 0.95 <= below / frame.headline.requests <= 1.0


def test_the_window_slides(hub: Hub, clock: HandClock) -> None:
    drive(hub, clock, FakeWorker(4, 40.0), seconds=20)
    clock.advance(WINDOW_S)
    frame = hub.frame()
    assert frame.headline.requests == 0
    assert frame.columns == ()
    assert frame.trail == ()
    assert frame.headline.score.p95 is None


def test_a_late_snapshot_does_not_turn_gauges_back(hub: Hub, clock: HandClock) -> None:
    worker = FakeWorker(2, 40.0)
    late, newer = worker.step(), worker.step()
    assert hub.accept(newer)
    before = hub.frame()
    assert not hub.accept(late)
    assert hub.frame().instances == before.instances
    assert hub.frame().headline == before.headline


def test_a_restarted_worker_goes_on_counting(hub: Hub, clock: HandClock) -> None:
    worker = FakeWorker(2, 40.0)
    requests = drive(hub, clock, worker, seconds=5)
    worker.restart(unix_s=99.0)
    requests += drive(hub, clock, worker, seconds=5)
    assert hub.frame().headline.requests == requests


def test_a_silent_worker_leaves_the_live_sums(hub: Hub, clock: HandClock) -> None:
    drive(hub, clock, FakeWorker(4, 40.0), seconds=5)
    assert hub.frame().headline.in_flight > 0
    clock.advance(LIVE_FOR_S + 0.1)
    frame = hub.frame()
    assert frame.headline.in_flight == 0
    assert all(row.stale for row in frame.instances)
    assert [worker.live for worker in frame.workers] == [False]


def test_an_instance_that_was_removed_disappears_and_its_trail_is_nameless(hub: Hub, clock: HandClock) -> None:
    worker = FakeWorker(3, 40.0)
    drive(hub, clock, worker, seconds=5)
    del worker.instances[0]
    drive(hub, clock, worker, seconds=1)
    frame = hub.frame()
    assert [row.name for row in frame.instances] == ["gpu-01", "gpu-02"]
    assert {point.row for point in frame.trail} == {-1, 0, 1}


def test_a_frame_survives_its_encoding(hub: Hub, clock: HandClock) -> None:
    drive(hub, clock, FakeWorker(8, 40.0), seconds=5)
    frame = msgspec.json.decode(hub.feed.newest(), type=Frame)
    assert len(frame.instances) == 8
    assert frame.decision is not None
    assert frame.decision.chosen in {row.name for row in frame.instances}


def test_load_is_even_when_all_carry_the_same(hub: Hub, clock: HandClock) -> None:
    worker = FakeWorker(2, 0.0)
    snapshot = worker.step()
    for bs, expected in (((4, 4), 1.0), ((6, 2), 1.5)):
        clock.advance(WINDOW_S)
        snapshot = replace(
            snapshot,
            seq=snapshot.seq + 1,
            instances=tuple(replace(i, bs=n, own_requests=n) for i, n in zip(snapshot.instances, bs, strict=True)),
        )
        assert hub.accept(snapshot)
        assert hub.frame().headline.load_max_over_mean == expected
