"""Findings, people who handle alerts, and a closed doorbell."""

from collections.abc import Callable

import pytest

from controlplane.accounts.actor import Actor
from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.models import Alert, Channel, ChannelKind
from controlplane.alerts.services.channels import ChannelSpec, create_channel
from controlplane.alerts.services.raising import raise_alert

OLGA = Actor("olga")


def finding(instance: str = "gpu-1", **changes: object) -> Finding:
    """Evidence against an instance."""
    facts: dict[str, object] = {
        "kind": "stale_metrics",
        "severity": Severity.WARNING,
        "labels": {"instance": instance},
        "summary": f"The engine of {instance} has not reported",
        "values": {"report_age_s": 30},
    }
    return Finding(**(facts | changes))  # type: ignore[arg-type]


@pytest.fixture
def alert(db: None) -> Alert:
    """A firing alert that nobody was told of."""
    return raise_alert(finding=finding())


@pytest.fixture
def channel(db: None) -> Callable[..., Channel]:
    """Make a webhook."""

    def make(name: str = "hook", url: str = "http://127.0.0.1:9/hook", **settings: object) -> Channel:
        spec = ChannelSpec(name=name, kind=ChannelKind.WEBHOOK, settings={"url": url, **settings})
        return create_channel(actor=OLGA, spec=spec)

    return make
