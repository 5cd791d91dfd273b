"""What several workers see of one instance adds up, without counting anything twice."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controlplane.telemetry.merged_instance import MergedInstance, merge_instances
from controlplane.telemetry.worker_book import LIVE_FOR_S, Heard
from router.core.instance import InstanceState
from router.snapshot import Snapshot
from tests.fakes.snapshots import FakeWorker


def seen(name: str, revision: int = 1, **changes: Any) -> Snapshot:
    """A snapshot of a worker that knows one instance."""
    snapshot = FakeWorker(1, rate=0.0, name=name).step()
    (instance,) = snapshot.instances
    return replace(snapshot, config_revision=revision, instances=(replace(instance, **changes),))


def merged(*snapshots: Snapshot, ages_s: tuple[float, ...] = ()) -> MergedInstance:
    heard = [
        Heard(snapshot, -age_s) for snapshot, age_s in zip(snapshots, ages_s or [0.0] * len(snapshots), strict=True)
    ]
    (instance,) = merge_instances(heard, 0.0)
    return instance


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5))
def test_bs_is_at_least_everything_booked_and_at_least_every_view(own_and_external: list[tuple[int, int]]) -> None:
    snapshots = [
        seen(f"router-{i}", own_requests=own, bs=own + external) for i, (own, external) in enumerate(own_and_external)
    ]
    bs = merged(*snapshots).bs
    assert bs >= sum(own for own, _ in own_and_external)
    assert bs >= max(own + external for own, external in own_and_external)
    assert bs <= sum(own + external for own, external in own_and_external)


def test_what_both_see_of_each_other_is_not_counted_twice() -> None:
    one = seen("router-0", own_requests=3, bs=8)
    other = seen("router-1", own_requests=5, bs=8)
    assert merged(one, other).bs == 8


def test_queued_prefill_adds_up() -> None:
    one, other = seen("router-0", queued_prefill_tokens=700), seen("router-1", queued_prefill_tokens=50)
    assert merged(one, other).queued_prefill_tokens == 750


def test_the_younger_report_speaks_for_the_engine() -> None:
    old = seen("router-0", reported_age_s=4.0, kv_use=0.9)
    young = seen("router-1", reported_age_s=0.5, kv_use=0.2)
    result = merged(old, young)
    assert (result.kv_use, result.reported_age_s) == (0.2, 0.5)


def test_an_engine_that_never_reported_has_no_age() -> None:
    result = merged(seen("router-0", reported_age_s=None, kv_use=None))
    assert (result.kv_use, result.reported_age_s) == (None, None)


def test_the_state_of_the_newest_revision_stands() -> None:
    old = seen("router-0", revision=4, state=InstanceState.READY)
    new = seen("router-1", revision=5, state=InstanceState.DRAINING)
    assert merged(old, new).state is InstanceState.DRAINING
    assert merged(new, old).state is InstanceState.DRAINING


def test_a_silent_worker_does_not_count_beside_a_live_one() -> None:
    live = seen("router-0", own_requests=2, bs=2, queued_prefill_tokens=10)
    silent = seen("router-1", own_requests=9, bs=9, queued_prefill_tokens=900)
    result = merged(live, silent, ages_s=(0.1, LIVE_FOR_S + 1))
    assert (result.bs, result.queued_prefill_tokens, result.stale) == (2, 10, False)


def test_what_only_silent_workers_know_is_shown_as_stale() -> None:
    result = merged(seen("router-0", own_requests=9, bs=9), ages_s=(LIVE_FOR_S + 1,))
    assert result.stale
    assert result.bs == 9
    assert not result.takes_requests
