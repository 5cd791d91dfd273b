"""An instance that should serve does not answer."""

from collections.abc import Iterator

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window
from router.core.instance import InstanceState

KIND = "instance_unreachable"


class InstanceUnreachableLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """None: probes have thresholds of their own."""


def instance_unreachable(window: Window, limits: InstanceUnreachableLimits) -> Iterator[Finding]:
    """Find instances whose probes failed often enough, or whose lease ran out."""
    for fact in window.fleet:
        if fact.state is InstanceState.UNREACHABLE:
            yield Finding(
                kind=KIND,
                severity=Severity.CRITICAL,
                labels={"instance": fact.name},
                summary=f"{fact.name} is unreachable: {fact.state_reason}"[:500],
            )
