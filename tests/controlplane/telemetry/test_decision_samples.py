"""The memory of decisions is bounded, ordered and searchable."""

from msgspec.structs import replace

from controlplane.telemetry.decision_samples import RETOLD_WITHIN_S, DecisionSamples
from router.snapshot import DecisionSample
from tests.fakes.snapshots import FakeWorker


def decision() -> DecisionSample:
    sample = FakeWorker(2, rate=100.0).step().last_decision
    assert sample is not None
    return sample


def test_the_oldest_go_first() -> None:
    samples, sample = DecisionSamples(capacity=3), decision()
    for number in range(5):
        samples.add(replace(sample, request_id=f"r{number}"))
    assert [s.request_id for s in samples.recent(10)] == ["r4", "r3", "r2"]
    assert samples.find("r1") is None
    found = samples.find("r3")
    assert found is not None
    assert found.request_id == "r3"


def test_the_same_decision_told_again_keeps_its_time_and_place() -> None:
    samples, sample = DecisionSamples(), decision()
    samples.add(replace(sample, request_id="a", time_unix_s=1.0))
    samples.add(replace(sample, request_id="b", time_unix_s=2.0))
    samples.add(replace(sample, request_id="a", time_unix_s=1.0 + RETOLD_WITHIN_S))
    newest, older = samples.recent(2)
    assert (newest.request_id, older.request_id, older.time_unix_s) == ("b", "a", 1.0)


def test_of_two_workers_that_each_tell_of_a_request_again_and_again_the_newer_one_is_believed() -> None:
    samples, sample = DecisionSamples(), decision()
    older = replace(sample, request_id="a", time_unix_s=1.0, chosen="gpu-00")
    newer = replace(sample, request_id="a", time_unix_s=1.5, chosen="gpu-01")
    for told in (older, newer, older, newer, older):
        samples.add(told)
    assert samples.recent(2) == [newer]


def test_an_id_that_is_used_again_later_is_another_decision_also_where_all_else_is_the_same() -> None:
    samples, sample = DecisionSamples(), decision()
    samples.add(replace(sample, request_id="a", time_unix_s=1.0))
    samples.add(again := replace(sample, request_id="a", time_unix_s=60.0))
    assert samples.recent(2) == [again]


def test_a_retry_elsewhere_replaces_the_first_decision() -> None:
    samples, sample = DecisionSamples(), decision()
    samples.add(replace(sample, request_id="a", chosen="gpu-00"))
    samples.add(replace(sample, request_id="b"))
    samples.add(replace(sample, request_id="a", chosen="gpu-01", time_unix_s=sample.time_unix_s + 0.1))
    newest = samples.newest()
    assert newest is not None
    assert (newest.request_id, newest.chosen) == ("a", "gpu-01")
