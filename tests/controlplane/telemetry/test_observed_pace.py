"""The pace of an instance over several workers and ranks: the mean of their costs, each by how much it saw."""

import pytest
from msgspec.structs import replace

from controlplane.telemetry.hub import Hub
from controlplane.telemetry.observed_pace import observed_pace, put_together
from controlplane.telemetry.ranks import fold_ranks, rank_name
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.snapshot import PaceSample, Snapshot
from tests.fakes.snapshots import FakeWorker

H100 = HARDWARE_PROFILES["h100"]


def sample(t0_s: float, answers: int, *, enough: bool = True) -> PaceSample:
    return PaceSample(t0_s, 2e-5, 1e-4, 2e-8, 0.01, answers, answers, 0.02, enough)


def test_who_saw_more_counts_for_more() -> None:
    pace = put_together([sample(0.004, 100), sample(0.008, 300)], "gpu-7", H100, 80_000)
    assert pace.profile.t0_s == pytest.approx(0.007)
    assert pace.profile.prefill_s_per_token == pytest.approx(2e-5)
    assert (pace.prefill_samples, pace.decode_samples, pace.enough) == (400, 400, True)
    assert pace.prefill_tokens_per_s == pace.profile.prefill_tokens_per_s
    assert pace.configured_prefill_tokens_per_s == H100.prefill_tokens_per_s


def test_sizes_are_the_engines_and_the_configured_ones() -> None:
    profile = put_together([sample(0.004, 10)], "gpu-7", H100, 80_000).profile
    assert (profile.name, profile.kv_capacity_tokens, profile.max_sequences) == (
        "observed-gpu-7",
        80_000,
        H100.max_sequences,
    )


def test_without_a_configured_profile_only_what_was_observed_is_shown() -> None:
    pace = put_together([sample(0.004, 10, enough=False)], "gpu-7", None, None)
    assert pace.configured is None
    assert {step.configured_s for step in pace.decode_steps} == {None}
    assert not pace.enough


def test_the_curve_is_that_of_the_profile() -> None:
    pace = put_together([sample(0.004, 10)], "gpu-7", H100, None)
    for step in pace.decode_steps:
        kv_tokens = step.batch * pace.context_tokens
        assert step.observed_s == pace.profile.step_s(sequences=step.batch, kv_tokens=kv_tokens)
        assert step.configured_s == H100.step_s(sequences=step.batch, kv_tokens=kv_tokens)


def of_ranks(worker: str, *paces: PaceSample | None) -> Snapshot:
    """Return what a worker says of one instance with so many data-parallel ranks."""
    snapshot = FakeWorker(1, rate=0.0, name=worker).step()
    (one,) = snapshot.instances
    ranks = (
        replace(one, id=rank_name(one.id, rank), name=rank_name(one.name, rank), pace=pace)
        for rank, pace in enumerate(paces)
    )
    return fold_ranks(replace(snapshot, instances=tuple(ranks)))


def test_every_rank_is_told_and_the_whole_is_their_mean(fresh_hub: Hub) -> None:
    fresh_hub.accept(of_ranks("router-0", sample(0.004, 100), sample(0.008, 300), None))
    fresh_hub.accept(of_ranks("router-1", sample(0.016, 100), None, None))
    pace = observed_pace("id-of-gpu-00", "gpu-00", "h100", None)
    assert pace is not None
    assert pace.profile.t0_s == pytest.approx((0.004 * 100 + 0.008 * 300 + 0.016 * 100) / 500)
    assert [(rank.name, rank.decode_samples) for rank in pace.ranks] == [("gpu-00#0", 200), ("gpu-00#1", 300)]
    first, second = (rank.decode_steps[0].observed_s for rank in pace.ranks)
    assert first - second == pytest.approx(0.010 - 0.008)
    assert pace.ranks[1].prefill_tokens_per_s > pace.prefill_tokens_per_s > pace.ranks[0].prefill_tokens_per_s


def test_ranks_stand_in_the_order_of_their_numbers(fresh_hub: Hub) -> None:
    fresh_hub.accept(of_ranks("router-0", *(sample(0.004, 10) for _ in range(12))))
    pace = observed_pace("id-of-gpu-00", "gpu-00", "", None)
    assert pace is not None
    assert [rank.name for rank in pace.ranks] == [f"gpu-00#{rank}" for rank in range(12)]


def test_an_instance_without_ranks_has_none(fresh_hub: Hub) -> None:
    snapshot = FakeWorker(1, rate=0.0).step()
    fresh_hub.accept(replace(snapshot, instances=(replace(snapshot.instances[0], pace=sample(0.004, 10)),)))
    pace = observed_pace("id-of-gpu-00", "gpu-00", "", None)
    assert pace is not None
    assert pace.ranks == ()
    assert observed_pace("id-of-another", "another", "", None) is None
