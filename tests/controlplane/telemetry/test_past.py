"""Roll-ups add up into columns of the past, and nothing is lost on the way."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.telemetry.past import MOST_COLUMNS, past_columns
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup
from router.core.histogram import merge
from tests.fakes.snapshots import FakeWorker


def rollup(bucket: int, seed: int) -> WorkerRollup:
    made, worker = WorkerRollup(worker="router-0", bucket=bucket), FakeWorker(2, 40.0, seed=seed)
    for _ in range(4):
        made.add(worker.step())
    return made


@settings(deadline=None)
@given(st.lists(st.integers(0, 359), max_size=20, unique=True), st.sampled_from([600, 900, 3_600]))
def test_every_request_is_in_exactly_one_column(positions: list[int], span_s: int) -> None:
    first = 1_800_000_000
    rollups = [rollup(first + position * BUCKET_S, position) for position in positions if position * BUCKET_S < span_s]
    columns = past_columns(rollups, first, span_s)
    told = sum(instance.requests for one in rollups for instance in one.instances.values())
    assert sum(column.traffic.requests for column in columns) == told
    assert sum(merge(column.traffic.score for column in columns).values()) == told
    assert len(columns) <= MOST_COLUMNS
    assert columns[0].start_s == first
    assert all(one.start_s + one.span_s == other.start_s for one, other in pairwise(columns))


def test_what_is_older_or_newer_is_left_out() -> None:
    first = 1_800_000_000
    outside = [rollup(first - BUCKET_S, 1), rollup(first + 600, 2)]
    assert sum(column.traffic.requests for column in past_columns(outside, first, 600)) == 0
