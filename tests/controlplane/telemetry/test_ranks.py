"""Data-parallel ranks are told apart to routers, and are one instance to people, who see them under it."""

from msgspec.structs import replace

from controlplane.telemetry.merged_instance import merge_instances
from controlplane.telemetry.ranks import fold_ranks, rank_name, whole_name
from controlplane.telemetry.worker_book import Heard
from router.snapshot import ChosenPoint, EventsSample, Residency, Snapshot
from tests.fakes.snapshots import FakeWorker


def of_two_ranks(worker: str = "router-0") -> Snapshot:
    snapshot = FakeWorker(1, rate=0.0, name=worker).step()
    (one,) = snapshot.instances
    exact = EventsSample(residency=Residency.EVENTS, connected=True, blocks=10)
    ranks = tuple(
        replace(
            one,
            id=rank_name(one.id, rank),
            name=rank_name(one.name, rank),
            bs=rank + 1,
            own_requests=rank + 1,
            running=rank + 1,
            waiting=0,
            queued_prefill_tokens=100 * rank,
            kv_use=0.2 + rank / 2,
            reported_running=rank,
            score={5: 1, 7 + rank: 2},
            events=exact,
        )
        for rank in range(2)
    )
    chosen = (ChosenPoint(ranks[1].id, 10, 2),)
    return replace(snapshot, instances=ranks, chosen=chosen)


def test_ranks_become_one_instance_that_keeps_them() -> None:
    snapshot = of_two_ranks()
    folded = fold_ranks(snapshot)
    (one,) = folded.instances
    assert (one.id, one.name) == (whole_name(snapshot.instances[0].id), whole_name(snapshot.instances[0].name))
    assert (one.bs, one.own_requests, one.queued_prefill_tokens, one.kv_use) == (3, 3, 100, 0.7)
    assert one.reported_running == 1
    assert one.score == {5: 2, 7: 2, 8: 2}
    assert (one.events.residency, one.events.blocks) == (Residency.EVENTS, 20)
    assert one.ranks == snapshot.instances
    assert [point.instance for point in folded.chosen] == [one.id]


def test_what_one_rank_does_not_tell_is_not_known_of_all() -> None:
    snapshot = of_two_ranks()
    first, second = snapshot.instances
    silent = replace(snapshot, instances=(first, replace(second, reported_running=None, ejected=True)))
    (one,) = fold_ranks(silent).instances
    assert one.reported_running is None
    assert not one.ejected


def test_a_snapshot_without_ranks_is_the_same() -> None:
    snapshot = FakeWorker(3, rate=0.0).step()
    assert fold_ranks(snapshot) is snapshot


def test_several_workers_are_put_together_rank_by_rank() -> None:
    heard = [Heard(fold_ranks(of_two_ranks(name)), 0.0) for name in ("router-0", "router-1")]
    (one,) = merge_instances(heard, 0.0)
    assert one.bs == 6
    assert [(rank.name[-2:], rank.bs, rank.queued_prefill_tokens) for rank in one.ranks] == [
        ("#0", 2, 0),
        ("#1", 4, 200),
    ]
