"""How long an engine step takes, in whole picoseconds.

Whole numbers make sums exact: a run of ``n`` decode steps computed at once ends at the very instant at which ``n``
single steps would end, whatever the order of the additions.
"""

import math

from router.core.hardware import HardwareProfile

PS_PER_S = 1_000_000_000_000


def to_ps(seconds: float) -> int:
    """Convert seconds to the nearest whole picosecond."""
    return round(seconds * PS_PER_S)


def to_s(picoseconds: int) -> float:
    """Convert picoseconds to seconds."""
    return picoseconds / PS_PER_S


class StepCost:
    """The cost model of one hardware profile (see :class:`router.core.hardware.HardwareProfile`)."""

    __slots__ = ("_kv", "_prefill", "_sequence", "_t0")

    def __init__(self, profile: HardwareProfile) -> None:
        self._t0 = to_ps(profile.t0_s)
        self._prefill = to_ps(profile.prefill_s_per_token)
        self._sequence = to_ps(profile.decode_s_per_sequence)
        self._kv = to_ps(profile.decode_s_per_kv_token)

    def step_ps(self, prefill_tokens: int, sequences: int, kv_tokens: int) -> int:
        """Return the duration of one step; ``kv_tokens`` is what the decoding sequences attend to."""
        return self._t0 + prefill_tokens * self._prefill + sequences * self._sequence + kv_tokens * self._kv

    def run_ps(self, steps: int, sequences: int, kv_tokens: int) -> int:
        """Return the duration of decode steps in a row, where every sequence grows by one token a step."""
        grown = steps * kv_tokens + sequences * (steps * (steps - 1) // 2)
        return steps * (self._t0 + sequences * self._sequence) + grown * self._kv

    def steps_until(self, elapsed_ps: int, sequences: int, kv_tokens: int) -> int:
        """Return the fewest decode steps in a row that last at least ``elapsed_ps`` (0 for a time of 0)."""
        slope = sequences * self._kv
        first = self._t0 + sequences * self._sequence + kv_tokens * self._kv - slope / 2
        root = math.sqrt(first * first + 2 * slope * elapsed_ps)
        steps = max(0, int(2 * elapsed_ps / (first + root)))
        while self.run_ps(steps, sequences, kv_tokens) < elapsed_ps:
            steps += 1
        while steps > 0 and self.run_ps(steps - 1, sequences, kv_tokens) >= elapsed_ps:
            steps -= 1
        return steps
