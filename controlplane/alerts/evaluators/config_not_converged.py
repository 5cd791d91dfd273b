"""A router worker runs an old configuration, or refused the newest one."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "config_not_converged"
_LIVE_S = 20


class ConfigNotConvergedLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a worker is late."""

    late_s: Annotated[float, Meta(gt=0)] = 20.0
    """Seconds for which a newer configuration has been there."""


def config_not_converged(window: Window, limits: ConfigNotConvergedLimits) -> Iterator[Finding]:
    """Find live workers that refused the newest configuration or have not taken it."""
    published = window.published
    for worker in window.workers():
        if published is None or worker.bucket < window.end - _LIVE_S:
            continue
        behind = worker.config_revision < published.revision and published.age_s > limits.late_s
        if not behind and worker.config_error is None:
            continue
        why = f"refused the newest configuration: {worker.config_error}" if worker.config_error else "is behind"
        yield Finding(
            kind=KIND,
            severity=Severity.CRITICAL if worker.config_error else Severity.WARNING,
            labels={"worker": worker.name},
            summary=f"Router worker {worker.name} {why}"[:500],
            values={"worker_revision": worker.config_revision, "published_revision": published.revision},
        )
