"""What the live page shows of the past is what roll-ups say."""

import pytest

from controlplane.telemetry import rollups
from controlplane.telemetry.history import Question, read_history
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup, bucket_of_time
from controlplane.telemetry.selection import Selection
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])
NOW_S = 1_800_000_005.0
EVERYTHING = Selection()


def write(buckets_ago: int, worker: FakeWorker, steps: int = 8) -> WorkerRollup:
    """Have a worker report a bucket that ended some buckets before now."""
    made = WorkerRollup(worker=worker.name, bucket=bucket_of_time(NOW_S) - buckets_ago * BUCKET_S)
    for _ in range(steps):
        made.add(worker.step())
    rollups.write([made])
    return made


def requests_of(*made: WorkerRollup) -> int:
    return sum(row.requests for one in made for row in one.instances.values())


def test_columns_cover_the_range_and_count_everything() -> None:
    worker = FakeWorker(3, 60.0)
    made = [write(ago, worker) for ago in (5, 3, 1)]
    write(91, worker)
    history = read_history(Question(minutes=15, selection=EVERYTHING), NOW_S)
    assert history.span_s * len(history.columns) == 15 * 60
    assert [column.requests for column in history.columns if column.requests] == [requests_of(one) for one in made]
    newest = history.columns[-1]
    assert newest.ttft_s.p50 is not None
    assert newest.ttft_s.p50 <= (newest.ttft_s.p99 or 0)
    assert newest.hit_ratio is not None
    assert newest.load is not None
    assert newest.load >= 1
    assert sum(newest.score_counts[1::2]) == newest.requests
    assert history.minutes == ()


def test_a_time_that_is_over_is_read_from_its_beginning_to_its_end() -> None:
    worker = FakeWorker(3, 60.0)
    inside, _after, _before = write(20, worker), write(1, worker), write(60, worker)
    begin = inside.bucket - 3 * 60 + 5
    history = read_history(Question(minutes=5, from_s=begin, selection=EVERYTHING), NOW_S)
    assert history.start_s == begin // BUCKET_S * BUCKET_S
    assert history.span_s * len(history.columns) == 5 * 60
    assert sum(column.requests for column in history.columns) == requests_of(inside)
    assert history.kept_from_s == bucket_of_time(NOW_S) - 60 * BUCKET_S


def test_of_a_time_of_which_nothing_is_kept_there_are_empty_columns_and_since_when_something_is() -> None:
    made = write(1, FakeWorker(3, 60.0))
    long_ago = int(NOW_S) - 86_400
    history = read_history(Question(minutes=60, from_s=long_ago, selection=EVERYTHING), NOW_S)
    assert {column.requests for column in history.columns} == {0}
    assert history.kept_from_s == made.bucket


def test_a_workload_and_a_model_are_told_apart() -> None:
    chat, batch = FakeWorker(2, 60.0, workload="chat"), FakeWorker(2, 20.0, name="router-1", workload="batch")
    for instance in batch.instances:
        instance.name, instance.models = f"b-{instance.name}", ("other",)
    made_chat, made_batch = write(1, chat), write(1, batch)
    for selection, expected in (
        (EVERYTHING, requests_of(made_chat, made_batch)),
        (Selection(workload="chat"), requests_of(made_chat)),
        (Selection(workload="batch"), requests_of(made_batch)),
        (Selection(model="other"), requests_of(made_batch)),
        (Selection(workload="nobody"), 0),
    ):
        history = read_history(Question(minutes=15, selection=selection), NOW_S)
        assert sum(column.requests for column in history.columns) == expected, selection


def test_two_instances_are_set_apart_and_compared() -> None:
    made = write(1, FakeWorker(3, 80.0), steps=40)
    names = ("gpu-00", "gpu-02")
    history = read_history(Question(minutes=15, selection=EVERYTHING, instances=names), NOW_S)
    by_name = {row.name: row for row in made.instances.values()}
    assert [course.instance for course in history.courses] == list(names)
    for course in history.courses:
        assert course.columns[-1].requests == by_name[course.instance].requests
    assert [minute.instance for minute in history.minutes] == list(names)
    for minute in history.minutes:
        row = by_name[minute.instance]
        assert minute.requests_per_s == pytest.approx(row.requests / 60, abs=0.01)
        assert minute.bs == pytest.approx(max(row.bs_sum, row.own_sum) / row.samples, abs=0.01)
        assert not minute.is_then
    shares = [row.bs_sum / row.samples for row in made.instances.values()]
    expected = by_name["gpu-00"].bs_sum / by_name["gpu-00"].samples / (sum(shares) / 3)
    assert history.courses[0].columns[-1].load == pytest.approx(expected, abs=0.01)


def test_two_times_are_compared() -> None:
    worker = FakeWorker(2, 60.0)
    then, now = write(40, worker), write(1, worker, steps=4)
    moment = then.bucket + 4
    earlier, newest = read_history(Question(minutes=1, selection=EVERYTHING, then_s=moment), NOW_S).minutes
    assert (earlier.is_then, newest.is_then) == (True, False)
    assert (earlier.end_s, newest.end_s) == (then.bucket + BUCKET_S, now.bucket + BUCKET_S)
    assert earlier.requests_per_s == pytest.approx(requests_of(then) / 60, abs=0.01)
    assert newest.requests_per_s == pytest.approx(requests_of(now) / 60, abs=0.01)


def test_an_answer_is_shared_until_there_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = FakeWorker(2, 60.0)
    write(2, worker)
    question = Question(minutes=15, selection=EVERYTHING)
    first = read_history(question, NOW_S)
    assert read_history(question, NOW_S + 1) is first
    assert read_history(question, NOW_S + BUCKET_S) is not first
    write(1, worker)
    assert sum(column.requests for column in read_history(question, NOW_S).columns) > sum(
        column.requests for column in first.columns
    )


def write_an_hour() -> int:
    """Have 64 instances report each minute of an hour; return their requests."""
    worker = FakeWorker(64, 300.0)
    rollup = WorkerRollup(worker="router-0", bucket=0)
    for _ in range(8):
        rollup.add(worker.step())
    for ago in range(1, 361, 6):
        rollup.bucket = bucket_of_time(NOW_S) - ago * BUCKET_S
        rollups.write([rollup])
    return 60 * requests_of(rollup)


def test_a_long_past_adds_up() -> None:
    """How long it takes is measured by tests/benchmarks/test_history.py."""
    requests = write_an_hour()
    history = read_history(Question(minutes=60, selection=EVERYTHING), NOW_S)
    assert sum(column.requests for column in history.columns) == requests
