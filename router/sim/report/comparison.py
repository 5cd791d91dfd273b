"""A comparison: the runs, and where they come from."""

from collections import Counter
from itertools import groupby

import msgspec

from router import __version__
from router.sim.metrics import Slo
from router.sim.runner import RunReport
from router.sim.scenario import InstanceSpec, Observation, Scenario
from router.sim.sweep import Saturation
from router.sim.traces.record import BLOCK_BYTES


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to get the same numbers again."""

    version: str
    trace: str
    trace_format: str
    trace_provenance: str
    requests: int
    block_tokens: int
    instances: int
    hardware: dict[str, int]
    hardware_sources: dict[str, str]
    observation: Observation
    warmup: float
    seed: int
    slo: Slo
    held_tokens: int = 0
    """Tokens of the prefixes that caches began with."""
    recorded_hit_ratio: float | None = None
    """Share of prompt tokens that real engines had in their caches, of the measured requests that say so."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where one policy sent the measured requests, beside the first policy of the comparison."""

    policy: str
    requests: dict[str, int]
    """By instance, all of the fleet."""
    refused: int
    moved: int
    """Requests that it sent elsewhere than the first policy did."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of several policies, perhaps at several rates."""

    provenance: Provenance
    runs: tuple[RunReport, ...]
    saturation: dict[str, Saturation] = {}
    """By policy, where a rate sweep was asked for."""
    placements: tuple[Placement, ...] = ()
    """Of each run, in order, where that was asked for."""


def provenance_of(scenario: Scenario, slo: Slo) -> Provenance:
    """Describe where numbers come from."""
    trace = scenario.trace
    return Provenance(
        version=__version__,
        trace=trace.name,
        trace_format=trace.format,
        trace_provenance=trace.provenance,
        requests=len(trace.requests),
        block_tokens=trace.block_tokens,
        instances=len(scenario.fleet),
        hardware=_hardware(scenario.fleet),
        hardware_sources={spec.profile.name: spec.profile.source for spec in scenario.fleet},
        observation=scenario.observation,
        warmup=scenario.warmup,
        seed=scenario.seed,
        slo=slo,
        held_tokens=_held_tokens(scenario),
        recorded_hit_ratio=_recorded_hit_ratio(scenario),
    )


def placement_of(policy: str, fleet: tuple[InstanceSpec, ...], choices: list[int], first: list[int]) -> Placement:
    """Count where requests went; ``choices`` and those of the first policy are aligned positions in the fleet."""
    counts = Counter(choices)
    return Placement(
        policy=policy,
        requests={spec.name: counts[place] for place, spec in enumerate(fleet)},
        refused=counts[-1],
        moved=sum(one != other for one, other in zip(choices, first, strict=True)),
    )


def _held_tokens(scenario: Scenario) -> int:
    """Count each block of an instance once."""
    names = {spec.name for spec in scenario.fleet}
    held = {
        (prefix.instance, prefix.blocks[start : start + BLOCK_BYTES])
        for prefix in scenario.trace.held
        if prefix.instance in names
        for start in range(0, len(prefix.blocks), BLOCK_BYTES)
    }
    return len(held) * scenario.trace.block_tokens


def _recorded_hit_ratio(scenario: Scenario) -> float | None:
    requests = scenario.trace.requests
    measured = requests[int(len(requests) * scenario.warmup) :]
    told = [(one.hit_tokens, one.prompt_tokens) for one in measured if one.hit_tokens is not None]
    return sum(hit for hit, _ in told) / sum(prompt for _, prompt in told) if told else None


def _hardware(fleet: tuple[InstanceSpec, ...]) -> dict[str, int]:
    names = sorted(spec.profile.name for spec in fleet)
    return {name: len(list(group)) for name, group in groupby(names)}
