"""A frame of one workload, or of one model, counts that and nothing else."""

import msgspec
import pytest

from controlplane.telemetry.feeds import MOST_IDLE, Feeds
from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.selection import EVERYTHING, LONGEST_NAME, Selection
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker

TICK_S = 0.25


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def hub(clock: HandClock) -> Hub:
    """A hub that has heard half a minute of two workloads, over instances of two models."""
    hub = Hub(clock)
    workers = [FakeWorker(4, 40.0, name=name, seed=at, workload=name) for at, name in enumerate(("chat", "batch"))]
    for worker in workers:
        for instance in worker.instances[2:]:
            instance.models = ("other", "shared")
        worker.instances[0].models = ()
    workers[1].rate = 10.0
    for _ in range(round(30 / TICK_S)):
        clock.advance(TICK_S)
        for worker in workers:
            assert hub.accept(worker.step(TICK_S))
    return hub


def frame_of(hub: Hub, **selection: str) -> Frame:
    return msgspec.json.decode(hub.feeds.of(Selection(**selection)).newest(), type=Frame)


def test_workloads_add_up_to_the_fleet(hub: Hub) -> None:
    whole, chat, batch = frame_of(hub), frame_of(hub, workload="chat"), frame_of(hub, workload="batch")
    for one in (chat, batch):
        assert one.headline.requests == sum(column.requests for column in one.columns) > 0
        assert sum(sum(column.score_counts[1::2]) for column in one.columns) == one.headline.requests
        assert one.workloads == whole.workloads
        assert len(one.instances) == 4
    assert chat.headline.requests + batch.headline.requests == whole.headline.requests
    assert chat.headline.requests_per_s == pytest.approx(40, rel=0.3)
    assert batch.headline.requests_per_s == pytest.approx(10, rel=0.5)
    assert len(chat.trail) + len(batch.trail) == len(whole.trail)
    assert chat.decision is not None
    assert chat.decision.workload == "chat"
    assert batch.headline.ttft_s != chat.headline.ttft_s


def test_a_model_chooses_the_instances_that_serve_it(hub: Hub) -> None:
    whole, other = frame_of(hub), frame_of(hub, model="other")
    assert whole.models == ("other", "qwen3-30b", "shared")
    assert other.models == whole.models
    assert [row.name for row in other.instances] == ["gpu-00", "gpu-02", "gpu-03"]
    served = {row.name: row for row in whole.instances}
    assert other.headline.requests == sum(served[row.name].requests for row in other.instances)
    assert sum(column.requests for column in other.columns) == other.headline.requests
    assert {point.row for point in other.trail} == {0, 1, 2}
    assert other.headline.load_max_over_mean != whole.headline.load_max_over_mean
    assert other.decision is None


def test_the_present_second_goes_on_counting(hub: Hub, clock: HandClock) -> None:
    worker = FakeWorker(4, 40.0, name="late", workload="chat")
    before = frame_of(hub, model="qwen3-30b")
    for _ in range(3):
        clock.advance(TICK_S)
        assert hub.accept(worker.step(TICK_S))
    after = frame_of(hub, model="qwen3-30b")
    assert sum(column.requests for column in after.columns) == after.headline.requests > before.headline.requests


def test_what_nobody_serves_is_an_empty_picture(hub: Hub) -> None:
    nobody = frame_of(hub, workload="nobody")
    assert nobody.headline.requests == 0
    assert nobody.headline.requests_per_s is None
    assert nobody.columns == ()
    assert nobody.trail == ()
    assert [row.name for row in frame_of(hub, model="nothing").instances] == ["gpu-00"]


def test_a_course_is_the_load_of_the_minute(hub: Hub) -> None:
    for row in frame_of(hub).instances:
        known = [bs for bs in row.bs_course if bs is not None]
        assert 8 <= len(known) <= 11
        assert max(known) > 0
        assert row.bs_course[0] is None


def test_people_who_look_at_the_same_share_a_feed(hub: Hub) -> None:
    assert hub.feeds.of(Selection(workload="chat")) is hub.feeds.of(Selection(workload="chat"))
    assert hub.feeds.of(EVERYTHING) is hub.feed


async def test_feeds_that_nobody_looks_at_do_not_pile_up(clock: HandClock) -> None:
    feeds = Feeds(lambda selection: lambda: selection.workload, clock)
    held = feeds.of(Selection(workload="held"))
    with held.subscribe():
        for number in range(MOST_IDLE * 3):
            feeds.of(Selection(workload=str(number)))
        assert feeds.of(Selection(workload="held")) is held
        assert feeds.count <= MOST_IDLE + 1


def test_names_have_a_bound() -> None:
    assert len(Selection.of(model="m" * 10_000, workload=None).model) == LONGEST_NAME
