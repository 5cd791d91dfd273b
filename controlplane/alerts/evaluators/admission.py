"""Requests wait long for room, or are refused at the door: a full fleet, or a workload at its limit."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import WINDOW_S, Window, WorkloadSpan

KIND = "admission"
_REASONS = {"queue_full": "too many waited already", "queue_timeout": "waited too long"}


class AdmissionLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When waiting and refusals are worth a look."""

    wait_s: Annotated[float, Meta(gt=0)] = 5.0
    """Mean wait for room over a minute, in seconds."""
    least_waiting: Annotated[float, Meta(ge=0)] = 1.0
    """Requests that wait at one time, on average over that minute, below which no wait is judged."""
    least_refused: Annotated[int, Meta(ge=1)] = 10
    """Refused requests in a minute."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.01
    """Refused requests over all of the workload's."""


def admission(window: Window, limits: AdmissionLimits) -> Iterator[Finding]:
    """Find workloads whose requests wait too long at the door, or are refused there. Quotas are a kind of their own."""
    for workload in window.workloads().values():
        refused, wait_s = sum(workload.refused.values()), mean_wait_s(workload)
        share = refused / max(1, workload.requests, refused)
        waits = wait_s >= limits.wait_s and workload.waiting_mean >= limits.least_waiting
        is_refused = refused >= limits.least_refused and share >= limits.share
        if waits or is_refused:
            yield Finding(
                kind=KIND,
                severity=Severity.WARNING,
                labels={"workload": workload.name},
                summary=_summary(workload, wait_s, refused),
                values={
                    "wait_mean_s": round(wait_s, 2),
                    "waiting_mean": round(workload.waiting_mean, 1),
                    "refused": refused,
                    "share_refused": round(share, 4),
                    **{f"refused_{reason}": count for reason, count in sorted(workload.refused.items())},
                    "requests": workload.requests,
                },
            )


def mean_wait_s(workload: WorkloadSpan) -> float:
    """Return how long requests waited, by Little's law: those that wait at one time over those that leave a second."""
    return workload.waiting_mean * WINDOW_S / max(1, workload.requests)


def _summary(workload: WorkloadSpan, wait_s: float, refused: int) -> str:
    parts = []
    if workload.waiting_mean:
        parts.append(
            f"{workload.waiting_mean:.3g} requests of {workload.name} wait at the door, {wait_s:.3g} s on average"
        )
    if refused:
        why = ", ".join(f"{count} {_REASONS.get(reason, reason)}" for reason, count in sorted(workload.refused.items()))
        parts.append(f"{refused} of {workload.name} were refused there in a minute ({why})")
    return "; ".join(parts)
