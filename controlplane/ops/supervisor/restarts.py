"""When to start a child again, and when to give up. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Delays double from ``first_s`` to ``most_s``; ``limit`` deaths with no healthy run between are too many."""

    first_s: float = 0.5
    most_s: float = 15.0
    healthy_after_s: float = 30.0
    limit: int = 5


class Restarts:
    """The record of one child."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self.deaths = 0
        """Deaths since the last healthy run."""

    def next_delay_s(self, ran_s: float) -> float | None:
        """Count a death after ``ran_s`` seconds; return how long to wait, or None to give up."""
        if ran_s >= self._policy.healthy_after_s:
            self.deaths = 0
        self.deaths += 1
        if self.deaths >= self._policy.limit:
            return None
        return float(min(self._policy.first_s * 2 ** (self.deaths - 1), self._policy.most_s))
