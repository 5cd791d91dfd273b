"""Who waits and who is inside, over all live workers; who was refused in the last minute."""

from msgspec.structs import replace

from controlplane.telemetry.hub import Hub
from controlplane.telemetry.traffic import WINDOW_S
from controlplane.telemetry.worker_book import LIVE_FOR_S
from router.snapshot import Snapshot
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker


def at_the_door(worker: FakeWorker, queued: int, inside: int | None, refused: dict[str, int]) -> Snapshot:
    made = worker.step()
    return replace(made, workloads=(replace(made.workloads[0], queued=queued, inside=inside, refused=refused),))


def test_doors_of_live_workers_are_added_and_refusals_counted_for_a_minute() -> None:
    clock = HandClock()
    hub = Hub(clock)
    one, two = FakeWorker(2, 1.0, name="one"), FakeWorker(2, 1.0, name="two")
    hub.accept(at_the_door(one, 3, 8, {"queue_full": 2}))
    hub.accept(at_the_door(two, 1, 7, {"queue_full": 1, "queue_timeout": 4}))
    (row,) = hub.frame().workloads
    assert (row.queued, row.inside, row.refused) == (4, 15, {"queue_full": 3, "queue_timeout": 4})
    clock.advance(LIVE_FOR_S + 1)
    hub.accept(at_the_door(one, 2, None, {}))
    (row,) = hub.frame().workloads
    assert (row.queued, row.inside) == (2, None), "who is silent has no door, and the other has no limit"
    clock.advance(WINDOW_S - LIVE_FOR_S)
    hub.accept(at_the_door(one, 0, None, {}))
    assert hub.frame().workloads[0].refused == {}
