"""The same scenario at another rate: recorded traces are played faster, generated ones are generated denser.

Playing a generated conversation faster would also shorten the pauses between its turns; generating more sessions in
the same time does not.
"""

from typing import Protocol

import msgspec

from router.sim.scenario import Scenario
from router.sim.traces.generator import generate
from router.sim.traces.generator_profiles import GENERATORS


class Traffic(Protocol):
    """Gives the scenario at ``rate_scale`` times the traffic's own rate; must be picklable."""

    def at(self, rate_scale: float) -> Scenario: ...


class RecordedTraffic(msgspec.Struct, frozen=True):
    """A scenario whose trace is played faster or slower."""

    scenario: Scenario

    def at(self, rate_scale: float) -> Scenario:
        """Return the scenario with arrivals ``rate_scale`` times as fast."""
        return msgspec.structs.replace(self.scenario, rate_scale=rate_scale)


class GeneratedTraffic(msgspec.Struct, frozen=True):
    """A scenario whose trace is generated anew for each rate; that of ``scenario`` is the one at scale 1."""

    scenario: Scenario
    generator: str
    duration_s: float
    requests_per_s: float | None = None
    """Rate at scale 1; None is the generator's own."""

    def at(self, rate_scale: float) -> Scenario:
        """Return the scenario with ``rate_scale`` times as many sessions in the same time."""
        if rate_scale == 1.0:
            return self.scenario
        rate = (self.requests_per_s or GENERATORS[self.generator].requests_per_s) * rate_scale
        trace = generate(self.generator, seed=self.scenario.seed, duration_s=self.duration_s, requests_per_s=rate)
        return msgspec.structs.replace(self.scenario, trace=trace)
