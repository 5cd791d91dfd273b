"""Decisions far above the 95th percentile of P-token x BS, sustained: requests are being placed where it hurts.

The reference is the distribution of the ten minutes before; what is judged are the newest twenty seconds. By
definition 5 % of decisions are above the reference's 95th percentile, so that only counts where it is by a factor.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import REFERENCE_S, Window
from router.core.histogram import Counts, lower_edge, quantile

KIND = "score_tail"
JUDGED_S = 20
LEAST_REFERENCE = 100
"""Decisions below which a 95th percentile means nothing."""


class ScoreTailLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a tail is too heavy."""

    factor: Annotated[float, Meta(gt=1)] = 4.0
    """How far above the 95th percentile a decision counts as far."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.1
    """Share of decisions that may be so far."""
    least_decisions: Annotated[int, Meta(ge=1)] = 20
    """Decisions below which nothing is judged."""


def tail_line(usual: Counts, limits: ScoreTailLimits) -> tuple[float, float] | None:
    """Return the usual 95th percentile and the score from which on a decision is far above it.

    :param usual: the decisions of the reference.
    :returns: None where they are too few to say.
    """
    p95 = quantile(usual, 0.95)
    if p95 is None or sum(usual.values()) < LEAST_REFERENCE:
        return None
    return p95, p95 * limits.factor


def usual_scores(window: Window) -> Mapping[str, Counts]:
    """Return the decisions of the reference, by workload."""
    return {name: span.score for name, span in window.workloads(REFERENCE_S, JUDGED_S).items()}


def score_tail(window: Window, limits: ScoreTailLimits) -> Iterator[Finding]:
    """Find workloads and instances whose decisions have moved far above what was usual."""
    usual_w = usual_scores(window)
    for name, workload in window.workloads(JUDGED_S).items():
        if name in usual_w:
            yield from _judge(limits, {"workload": name}, f"workload {name}", workload.score, usual_w[name])
    judged_i, usual_i = window.instances(JUDGED_S), window.instances(REFERENCE_S, JUDGED_S)
    for identity, instance in judged_i.items():
        if identity in usual_i:
            subject = f"instance {instance.name}"
            yield from _judge(limits, {"instance": instance.name}, subject, instance.score, usual_i[identity].score)


def _judge(
    limits: ScoreTailLimits, labels: Mapping[str, str], subject: str, judged: Counts, usual: Counts
) -> Iterator[Finding]:
    found = tail_line(usual, limits)
    decisions = sum(judged.values())
    if found is None or decisions < limits.least_decisions:
        return
    p95, line = found
    above = sum(count for bucket, count in judged.items() if lower_edge(bucket) >= line)
    if above / decisions < limits.share:
        return
    yield Finding(
        kind=KIND,
        severity=Severity.WARNING,
        labels=labels,
        summary=f"{above / decisions:.0%} of the decisions for {subject} are above {limits.factor:g} times the usual "
        f"95th percentile of P-token x BS ({p95:,.0f})",
        values={
            "usual_p95_score": round(p95),
            "line_score": round(line),
            "decisions": decisions,
            "decisions_above": above,
            "share_above": round(above / decisions, 4),
        },
    )
