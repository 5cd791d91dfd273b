"""What happened is told in words, with a page to read on."""

import time

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert
from controlplane.fleet.lifecycle import Event
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.policies.services import revisions
from dashboards.past_events import _ACTIONS, EventKind, events_since

pytestmark = pytest.mark.django_db(transaction=True)


def register(*names: str) -> None:
    for name in names:
        registration.register(actor=SYSTEM, spec=InstanceSpec(name=name, url=f"http://10.0.0.1:80{len(name)}/{name}"))


def test_a_fleet_that_starts_is_one_event(signed_in: Client) -> None:
    register("gpu-00", "gpu-01", "gpu-02")
    revisions.publish(actor=SYSTEM, name="default", message="why", expected=1, content={"b": 0.5})
    registered, published = events_since(time.time() - 60)
    assert registered.text == "gpu-00 and 2 more registered"
    assert (registered.kind, published.kind) == (EventKind.ROTATION, EventKind.POLICY)
    for event in (registered, published):
        assert signed_in.get(event.href).status_code == 200


def test_an_alert_links_to_itself(signed_in: Client) -> None:
    finding = Finding(kind="score_tail", severity=Severity.WARNING, labels={"workload": "chat"}, summary="heavy")
    now = timezone.now()
    alert = Alert.objects.create(
        fingerprint=finding.fingerprint,
        kind=finding.kind,
        severity=finding.severity,
        labels=finding.labels,
        summary=finding.summary,
        state=AlertState.FIRING,
        state_since=now,
        started_at=now,
        last_seen_at=now,
    )
    (event,) = events_since(time.time() - 60)
    assert event.kind is EventKind.ALERT
    assert event.text == "alert: P-token x BS tail (chat)"
    assert event.href == f"/alerts/{alert.pk}/"
    assert events_since(time.time() + 60) == []


def test_every_move_of_an_instance_that_is_told_of_exists() -> None:
    moves = {action.partition(".")[2] for action in _ACTIONS if action.startswith("instance.")}
    assert moves - {"register"} <= {event.value for event in Event}
