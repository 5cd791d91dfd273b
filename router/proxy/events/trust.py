"""Whether an instance's events are believed: they are checked against what its engine reports for every answer.

Where predictions persistently differ from reports, the instance is estimated for a while; then its events are asked for
anew and believed on probation. A probation that fails doubles the wait.
"""

import msgspec

from router.kvevents.self_check import CheckReport, SelfCheck, Trust

FIRST_DOUBT_S = 60.0
LONGEST_DOUBT_S = 1800.0
FORGIVEN_AFTER = 10
"""A doubt that ended so many times its own length ago does not make the next one longer."""


class _Doubt(msgspec.Struct):
    until_s: float
    lasts_s: float
    on_probation: bool = False


class EventTrust:
    """Doubts by instance id. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._check = SelfCheck()
        self._doubts: dict[str, _Doubt] = {}

    def record(self, instance: str, model: str, *, predicted: int, reported: int, prompt: int, block: int) -> bool:
        """Take in one answer (counts in tokens); return whether the instance is no longer to be believed."""
        trust = self._check.record(instance, model, predicted=predicted, reported=reported, prompt=prompt, block=block)
        return trust is Trust.BAD

    def doubt(self, instance: str, now_s: float) -> None:
        """Do not believe an instance for a while, longer each time."""
        known = self._doubts.get(instance)
        forgiven = known is None or now_s - known.until_s > FORGIVEN_AFTER * known.lasts_s
        lasts_s = FIRST_DOUBT_S if known is None or forgiven else min(LONGEST_DOUBT_S, 2 * known.lasts_s)
        self._doubts[instance] = _Doubt(now_s + lasts_s, lasts_s)

    def doubted(self, instance: str, now_s: float) -> bool:
        """Tell whether an instance is not believed now."""
        doubt = self._doubts.get(instance)
        return doubt is not None and now_s < doubt.until_s

    def believe(self, instance: str) -> None:
        """An instance is believed from now on; one that was doubted is judged by its next answers only."""
        doubt = self._doubts.get(instance)
        if doubt is not None and not doubt.on_probation:
            doubt.on_probation = True
            self._check.forget(instance)

    def forget(self, instance: str) -> None:
        """The instance is gone, or another engine has taken its place."""
        self._check.forget(instance)
        self._doubts.pop(instance, None)

    def report(self, instance: str) -> CheckReport | None:
        """Return what the check found about an instance and the model with which it agrees least; None before that."""
        return max(self._check.reports_of(instance), key=lambda report: report.wrong_share, default=None)
