"""Alerts to look at, and people with less than every role."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.accounts.access import Role
from controlplane.accounts.models import User
from controlplane.alerts.feed import alerts_feed
from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.models import Alert
from controlplane.alerts.services.raising import raise_alert


def fire(
    instance: str = "gpu-01", kind: str = "stale_metrics", severity: Severity = Severity.WARNING, summary: str = ""
) -> Alert:
    """Raise an alert about an instance."""
    return raise_alert(
        finding=Finding(
            kind=kind,
            severity=severity,
            labels={"instance": instance},
            summary=summary or f"The engine of {instance} last reported 31 s ago",
            values={"report_age_s": 31.2},
        )
    )


@pytest.fixture(autouse=True)
def fresh_feed() -> None:
    """A feed that belongs to this test's event loop."""
    alerts_feed.cache_clear()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold back messages to Celery."""
    monkeypatch.setattr("controlplane.fleet.doorbell.ring", lambda task, *args: None)


@pytest.fixture
def signed_in_as(transactional_db: None) -> Callable[[Role], Client]:
    """A client of somebody with a role."""

    def make(role: Role) -> Client:
        client = Client()
        client.force_login(User.objects.create_user(f"a-{role.value}", role, None))
        return client

    return make
