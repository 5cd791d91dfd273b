"""What is simulated: a trace on a fleet, how late the router learns of the engines, and what happens on the way."""

from collections.abc import Mapping

import msgspec

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import DEFAULT_PROFILE, HARDWARE_PROFILES
from router.core.preload_budget import PreloadBudget
from router.sim.errors import ScenarioError
from router.sim.traces.record import Trace

DEFAULT_REPORT_S = 0.2


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the router sees besides its own bookings, and how late.

    Engines are asked for their metrics every ``report_period_s``; an answer is known ``report_delay_s`` later. With
    ``kv_event_delay_s`` engines also publish KV events, known that much later; None means there are none.
    ``exact_queue`` adds the exact uncached waiting tokens to the metrics, as some engines do.
    """

    report_period_s: float = DEFAULT_REPORT_S
    report_delay_s: float = DEFAULT_REPORT_S
    kv_event_delay_s: float | None = None
    exact_queue: bool = False


class InstanceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated instance; ``join_s`` after the start it enters the fleet (0: it is there from the beginning)."""

    name: str
    profile: HardwareProfile
    join_s: float = 0.0


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """An engine loses everything at ``at_s`` and is back at once, empty; the router notices ``noticed_after_s`` later.

    Requests there that have not begun to answer are decided again elsewhere; the others fail.
    """

    instance: str
    at_s: float
    noticed_after_s: float = 1.0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides the outcome of a run, but the policy.

    :param rate_scale: arrivals come this many times as fast as in the trace (think times stay).
    :param warmup: share of the requests, the first to arrive, that metrics leave out (0 <= warmup < 1).
    """

    trace: Trace
    fleet: tuple[InstanceSpec, ...]
    observation: Observation = Observation()
    restarts: tuple[Restart, ...] = ()
    preload: PreloadBudget | None = None
    """Whether instances that join, or were restarted, are filled with hot prefixes, and hot classes brought to all."""
    rate_scale: float = 1.0
    warmup: float = 0.1
    seed: int = 0

    @property
    def kv_block_tokens(self) -> int:
        """Tokens of a KV block: the trace's blocks where it has some, so that hits are exact."""
        return self.trace.block_tokens

    def check(self) -> None:
        """Refuse what cannot be run.

        :raises ScenarioError: with the reason.
        """
        names = [spec.name for spec in self.fleet]
        if not any(spec.join_s <= 0 for spec in self.fleet):
            raise ScenarioError("no instance is there at the start")
        if len(set(names)) != len(names):
            raise ScenarioError("two instances have the same name")
        if not self.trace.requests:
            raise ScenarioError(f"trace {self.trace.name} has no requests")
        if self.rate_scale <= 0:
            raise ScenarioError(f"the rate scale is {self.rate_scale}, but must be above 0")
        if not 0 <= self.warmup < 1:
            raise ScenarioError(f"the warm-up share is {self.warmup}, but must be in [0, 1)")
        if self.observation.report_period_s <= 0 or self.observation.report_delay_s < 0:
            raise ScenarioError("metrics need a period above 0 and a delay of at least 0")
        if unknown := {restart.instance for restart in self.restarts} - set(names):
            raise ScenarioError(f"restart of unknown instances: {', '.join(sorted(unknown))}")


Profiles = Mapping[str, HardwareProfile]


def fleet_of(hardware: str | None, instances: int, profiles: Profiles = HARDWARE_PROFILES) -> tuple[InstanceSpec, ...]:
    """Build a fleet from ``PROFILE[:COUNT],...``; one profile without a count, or None, fills all ``instances``.

    :raises ScenarioError: for an unknown profile or a count that does not add up.
    """
    parts = [part.partition(":") for part in (hardware or DEFAULT_PROFILE).split(",")]
    if len(parts) == 1 and not parts[0][1]:
        return uniform_fleet(profile_of(parts[0][0], profiles), instances)
    specs: list[InstanceSpec] = []
    for name, _, count in parts:
        profile = profile_of(name, profiles)
        try:
            number = int(count or "1")
        except ValueError:
            raise ScenarioError(f"{count!r} is not a number of instances") from None
        if number < 1:
            raise ScenarioError(f"{number} instances of {name} serve nothing")
        specs += (InstanceSpec(name=f"{profile.name}-{len(specs) + i}", profile=profile) for i in range(number))
    return tuple(specs)


def uniform_fleet(profile: HardwareProfile, instances: int) -> tuple[InstanceSpec, ...]:
    """Build a fleet of equal instances.

    :raises ScenarioError: for fewer than one.
    """
    if instances < 1:
        raise ScenarioError(f"{instances} instances serve nothing")
    return tuple(InstanceSpec(name=f"{profile.name}-{i}", profile=profile) for i in range(instances))


def profile_of(name: str, profiles: Profiles = HARDWARE_PROFILES) -> HardwareProfile:
    """Return a named hardware profile.

    :raises ScenarioError: when there is none.
    """
    try:
        return profiles[name]
    except KeyError:
        raise ScenarioError(f"no hardware profile {name!r}; there are: {', '.join(profiles)}") from None
