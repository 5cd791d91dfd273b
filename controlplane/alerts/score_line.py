"""The score above which the alert on the tail of P-token x BS counts a decision, by the settings in force."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from controlplane.alerts.evaluating import limits_in_force
from controlplane.alerts.evaluators.score_tail import (
    JUDGED_S,
    KIND,
    LEAST_REFERENCE,
    ScoreTailLimits,
    tail_line,
    usual_scores,
)
from controlplane.alerts.window import REFERENCE_S, Window, newest_end
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import BUCKET_S


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """Where the alert begins to count, and when it fires."""

    enabled: bool
    """Whether the alert is looked for at all."""
    workload: str | None = None
    """Whose line it is; None where no workload has one."""
    usual_p95: float | None = None
    score: float | None = None
    factor: float | None = None
    share: float | None = None
    """Share of decisions above the line at which the alert fires."""
    judged_s: int = JUDGED_S
    instances: Mapping[str, float] = msgspec.field(default_factory=dict)
    """The lines of single instances, by name: each is judged by what is usual there."""
    least_reference: int = LEAST_REFERENCE
    """Decisions of the last ten minutes that a line takes."""


def score_line(now_unix_s: float, workload: str = "") -> ScoreLine:
    """Return the line of a workload or, where none is named, of the one that would be first to fire: the lowest."""
    limits = limits_in_force().get(KIND)
    if not isinstance(limits, ScoreTailLimits):
        return ScoreLine(enabled=False)
    end = newest_end(now_unix_s)
    window = Window(end=end, rollups=rollups.read(end - REFERENCE_S, end - BUCKET_S))
    usual = usual_scores(window)
    wanted = {name: counts for name, counts in usual.items() if workload in ("", name)}
    lines = [(name, line) for name, counts in wanted.items() if (line := tail_line(counts, limits)) is not None]
    found = ScoreLine(enabled=True, factor=limits.factor, share=limits.share, instances=_instance_lines(window, limits))
    if not lines:
        return found
    name, (p95, score) = min(lines, key=lambda one: one[1][1])
    return replace(found, workload=name, usual_p95=round(p95), score=round(score))


def _instance_lines(window: Window, limits: ScoreTailLimits) -> Mapping[str, float]:
    spans = window.instances(REFERENCE_S, JUDGED_S).values()
    found = {span.name: tail_line(span.score, limits) for span in spans}
    return {name: round(line[1]) for name, line in found.items() if line is not None}
