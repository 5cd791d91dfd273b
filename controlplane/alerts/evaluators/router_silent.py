"""A router worker that reported a short while ago reports no more."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import REFERENCE_S, Window

KIND = "router_silent"


class RouterSilentLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When silence is too long."""

    silent_s: Annotated[int, Meta(ge=20, lt=REFERENCE_S)] = 30
    """Seconds without a word from a worker that was heard before."""


def router_silent(window: Window, limits: RouterSilentLimits) -> Iterator[Finding]:
    """Find workers of the last ten minutes that have been silent."""
    for worker in window.workers():
        silent_s = window.end - worker.bucket
        if silent_s > limits.silent_s:
            yield Finding(
                kind=KIND,
                severity=Severity.CRITICAL,
                labels={"worker": worker.name},
                summary=f"Router worker {worker.name} has not reported for {silent_s} s",
                values={"silent_s": silent_s},
            )
