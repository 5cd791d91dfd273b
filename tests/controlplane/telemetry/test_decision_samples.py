"""The memory of decisions is bounded, ordered and searchable."""

from msgspec.structs import replace

from controlplane.telemetry.decision_samples import DecisionSamples
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
    samples.add(replace(sample, request_id="a", time_unix_s=3.0))
    newest, older = samples.recent(2)
    assert (newest.request_id, older.request_id, older.time_unix_s) == ("b", "a", 1.0)


def test_a_retry_elsewhere_replaces_the_first_decision() -> None:
    samples, sample = DecisionSamples(), decision()
    samples.add(replace(sample, request_id="a", chosen="gpu-00"))
    samples.add(replace(sample, request_id="b"))
    samples.add(replace(sample, request_id="a", chosen="gpu-01"))
    newest = samples.newest()
    assert newest is not None
    assert (newest.request_id, newest.chosen) == ("a", "gpu-01")
