"""From single probes to events: n failures in a row are *down*, m successes in a row are *up*.

Pure: a standing and a result in, a standing and perhaps an event out.
"""

from dataclasses import dataclass

from controlplane.fleet.lifecycle import JOINING, Event
from router.core.instance import InstanceState


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How many probes in a row it takes (each >= 1)."""

    failures_down: int
    successes_up: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of an instance from earlier probes."""

    state: InstanceState
    failures: int
    successes: int
    process_started_unix_s: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one more probe adds."""

    failures: int
    successes: int
    event: Event | None


def judge(standing: Standing, ok: bool, process_started_unix_s: float | None, limits: Thresholds) -> Verdict:
    """Count one probe in.

    An instance that is joining needs one success: it has no record to lose. Another start time of the engine process
    means a restart even where no probe failed in between.
    """
    if not ok:
        failures = standing.failures + 1
        down = failures >= limits.failures_down and standing.state is not InstanceState.UNREACHABLE
        return Verdict(failures, 0, Event.DOWN if down else None)
    successes = min(standing.successes + 1, limits.successes_up)  # capped, so that a healthy row stays as it is
    return Verdict(0, successes, _success_event(standing, successes, process_started_unix_s, limits))


def _success_event(
    standing: Standing, successes: int, started_unix_s: float | None, limits: Thresholds
) -> Event | None:
    known = standing.process_started_unix_s
    if standing.state in JOINING:
        return Event.UP
    if standing.state is InstanceState.UNREACHABLE:
        if successes < limits.successes_up:
            return None
        return Event.RETURNED if started_unix_s is not None and started_unix_s == known else Event.UP
    return Event.RESTARTED if started_unix_s is not None and known is not None and started_unix_s != known else None
