"""What each instance's steps cost by the requests that router workers saw it serve, put together over live workers.

Every worker measures by its own requests; their costs are averaged, each by how much it saw. So are those of the
data-parallel ranks of an instance, which are told one by one as well: a rank that is slow is seen, not averaged away.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from controlplane.telemetry.hub import hub
from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import DEFAULT_PROFILE, HARDWARE_PROFILES
from router.snapshot import PaceSample
from router.state.pace.pace_meter import profile_name

BATCHES = (1, 4, 16, 32, 64, 128)
CONTEXT_TOKENS = 1000
"""KV tokens of each sequence for which a decode step is shown."""


class DecodeStep(msgspec.Struct, frozen=True):
    """A point of the decode curve; ``configured_s`` is None without a configured profile."""

    batch: int
    observed_s: float
    configured_s: float | None

    @property
    def over_configured(self) -> float | None:
        """Return how many times as long it takes; None without a configured profile."""
        return self.observed_s / self.configured_s if self.configured_s else None


class RankPace(msgspec.Struct, frozen=True, kw_only=True):
    """The pace of one data-parallel rank."""

    name: str
    prefill_tokens_per_s: float
    first_token_overhead_s: float
    decode_steps: tuple[DecodeStep, ...]
    prefill_samples: int
    decode_samples: int
    enough: bool


class ObservedPace(msgspec.Struct, frozen=True, kw_only=True):
    """The pace of one instance. ``profile`` is what the simulator takes."""

    profile: HardwareProfile
    configured: str | None
    prefill_tokens_per_s: float
    configured_prefill_tokens_per_s: float | None
    first_token_overhead_s: float
    decode_steps: tuple[DecodeStep, ...]
    context_tokens: int
    prefill_samples: int
    decode_samples: int
    relative_error: float
    enough: bool
    """Whether every worker that measured it uses it where a policy asks for observed hardware."""
    ranks: tuple[RankPace, ...] = ()
    """Its data-parallel ranks that were observed, where it has several; the rest is their mean."""


def observed_pace(instance_id: str, name: str, hardware: str, kv_capacity_tokens: int | None) -> ObservedPace | None:
    """Return what live workers observed of an instance; None while that is nothing.

    :param hardware: name of its configured profile; blank without one.
    """
    samples: dict[str, list[PaceSample]] = {}
    for rank, sample in _samples(instance_id):
        samples.setdefault(rank, []).append(sample)
    if not samples:
        return None
    configured = HARDWARE_PROFILES.get(hardware)
    whole = put_together(list(chain.from_iterable(samples.values())), name, configured, kv_capacity_tokens)
    ranks = (
        _rank_pace(rank, put_together(samples[rank], rank, configured, kv_capacity_tokens))
        for rank in sorted(samples, key=lambda rank: (len(rank), rank))
        if rank != ""
    )
    return msgspec.structs.replace(whole, ranks=tuple(ranks))


def _samples(instance_id: str) -> Iterator[tuple[str, PaceSample]]:
    """Return what live workers say of an instance, each with the name of a rank or, where it has none, a blank."""
    for snapshot in hub().live_snapshots():
        for sample in snapshot.instances:
            if sample.id == instance_id:
                parts = [(rank.name, rank.pace) for rank in sample.ranks] or [("", sample.pace)]
                yield from ((rank, pace) for rank, pace in parts if pace is not None)


def _rank_pace(name: str, pace: ObservedPace) -> RankPace:
    return RankPace(
        name=name,
        prefill_tokens_per_s=pace.prefill_tokens_per_s,
        first_token_overhead_s=pace.first_token_overhead_s,
        decode_steps=pace.decode_steps,
        prefill_samples=pace.prefill_samples,
        decode_samples=pace.decode_samples,
        enough=pace.enough,
    )


def put_together(
    samples: Sequence[PaceSample], name: str, configured: HardwareProfile | None, kv_capacity_tokens: int | None
) -> ObservedPace:
    """Average what workers observed (at least one), each by its samples."""
    weights = [sample.prefill_samples + sample.decode_samples for sample in samples]

    def mean(field: str) -> float:
        values = (getattr(sample, field) * weight for sample, weight in zip(samples, weights, strict=True))
        return float(sum(values) / sum(weights))

    limits = configured or HARDWARE_PROFILES[DEFAULT_PROFILE]
    requests = sum(sample.decode_samples for sample in samples)
    profile = msgspec.structs.replace(
        limits,
        name=profile_name(name),
        t0_s=mean("t0_s"),
        prefill_s_per_token=mean("prefill_s_per_token"),
        decode_s_per_sequence=mean("decode_s_per_sequence"),
        decode_s_per_kv_token=mean("decode_s_per_kv_token"),
        kv_capacity_tokens=kv_capacity_tokens or limits.kv_capacity_tokens,
        source=f"observed at {name} by {len(samples)} router workers, by {requests} answers",
    )
    return ObservedPace(
        profile=profile,
        configured=None if configured is None else configured.name,
        prefill_tokens_per_s=profile.prefill_tokens_per_s,
        configured_prefill_tokens_per_s=None if configured is None else configured.prefill_tokens_per_s,
        first_token_overhead_s=mean("first_token_overhead_s"),
        decode_steps=tuple(_decode_step(batch, profile, configured) for batch in BATCHES),
        context_tokens=CONTEXT_TOKENS,
        prefill_samples=sum(sample.prefill_samples for sample in samples),
        decode_samples=requests,
        relative_error=mean("relative_error"),
        enough=all(sample.enough for sample in samples),
    )


def _decode_step(batch: int, observed: HardwareProfile, configured: HardwareProfile | None) -> DecodeStep:
    def step_s(profile: HardwareProfile) -> float:
        return profile.step_s(sequences=batch, kv_tokens=batch * CONTEXT_TOKENS)

    return DecodeStep(batch, step_s(observed), None if configured is None else step_s(configured))
