"""From evaluations to alerts: raised once, damped, brought back, resolved."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.changes import newest_change
from controlplane.alerts.finding import Finding, Severity, fingerprint_of
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Suspicion
from controlplane.alerts.services import handling
from controlplane.alerts.services.raising import expire_acknowledgements, raise_alert, take_in
from tests.controlplane.alerts.conftest import OLGA, finding

pytestmark = pytest.mark.django_db


@pytest.fixture
def ends() -> Iterator[int]:
    """Ends of windows, one after the other."""
    return count(1_800_000_000, 10)


def evaluate(ends: Iterator[int], *findings: Finding, times: int = 1) -> None:
    """Evaluate windows in which the same is found."""
    for _ in range(times):
        assert take_in(end=next(ends), findings=findings) is not None


def texts(alert: Alert) -> list[str]:
    """Return the kinds of the entries of a timeline."""
    return list(alert.timeline.values_list("what", flat=True))


def test_it_is_raised_after_its_patience_and_once(ends: Iterator[int]) -> None:
    evaluate(ends, finding())
    assert not Alert.objects.exists()
    evaluate(ends, finding(), times=5)
    alert = Alert.objects.get()
    assert alert.life is AlertState.FIRING
    assert texts(alert) == ["fired"]


def test_one_finding_alone_raises_nothing_and_is_forgotten(ends: Iterator[int]) -> None:
    for _ in range(3):
        evaluate(ends, finding())
        evaluate(ends)
    assert not Alert.objects.exists()
    assert not Suspicion.objects.exists()


def test_it_is_resolved_when_the_evidence_is_gone(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    evaluate(ends)
    assert Alert.objects.get().life is AlertState.FIRING
    evaluate(ends)
    alert = Alert.objects.get()
    assert alert.life is AlertState.RESOLVED
    assert alert.resolved_by == SYSTEM.label
    assert texts(alert) == ["fired", "resolved"]


def test_a_window_is_counted_once_whoever_comes(ends: Iterator[int]) -> None:
    end = next(ends)
    assert take_in(end=end, findings=[finding()]) is not None
    assert take_in(end=end, findings=[finding()]) is None
    assert take_in(end=end - 10, findings=[]) is None
    assert Suspicion.objects.get().seen == 1


def test_what_comes_back_soon_is_the_same_alert_and_is_slower_to_resolve(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    evaluate(ends, times=2)
    evaluate(ends, finding(), times=2)
    alert = Alert.objects.get()
    assert (alert.life, alert.recurrences, alert.resolved_at) == (AlertState.FIRING, 1, None)
    evaluate(ends, times=2)
    assert Alert.objects.get().life is AlertState.FIRING
    evaluate(ends, times=2)
    assert Alert.objects.get().life is AlertState.RESOLVED
    assert texts(alert) == ["fired", "resolved", "recurred", "resolved"]


def test_what_comes_back_late_is_a_new_alert(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    evaluate(ends, times=2)
    Alert.objects.update(resolved_at=timezone.now() - timedelta(minutes=16))
    evaluate(ends, finding(), times=2)
    assert Alert.objects.count() == 2
    assert Alert.objects.filter(recurrences=0).count() == 2


def test_the_newest_evidence_is_kept_and_severity_is_noted(alert: Alert) -> None:
    worse = finding(severity=Severity.CRITICAL, values={"report_age_s": 300}, summary="worse")
    assert raise_alert(finding=worse).pk == alert.pk
    alert.refresh_from_db()
    assert (alert.severity, alert.summary, alert.values) == ("critical", "worse", {"report_age_s": 300})
    assert texts(alert) == ["fired", "severity"]


def test_an_acknowledged_alert_stays_so_while_it_is_seen_and_resolves_by_itself(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    handling.acknowledge(actor=OLGA, alert_id=Alert.objects.get().pk)
    evaluate(ends, finding(), times=3)
    assert Alert.objects.get().life is AlertState.ACKNOWLEDGED
    evaluate(ends, times=2)
    assert Alert.objects.get().life is AlertState.RESOLVED


def test_resolving_by_hand_starts_the_patience_over(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    handling.resolve(actor=OLGA, alert_id=Alert.objects.get().pk)
    evaluate(ends, finding())
    assert Alert.objects.get().life is AlertState.RESOLVED
    evaluate(ends, finding())
    assert (Alert.objects.get().life, Alert.objects.get().recurrences) == (AlertState.FIRING, 1)


def test_an_acknowledgement_ends(alert: Alert) -> None:
    handling.acknowledge(actor=OLGA, alert_id=alert.pk, until=timezone.now() + timedelta(hours=1))
    assert expire_acknowledgements() == 0
    Alert.objects.update(acknowledged_until=timezone.now())
    assert expire_acknowledgements() == 1
    alert.refresh_from_db()
    assert (alert.life, alert.acknowledged_by, alert.acknowledged_until) == (AlertState.FIRING, "", None)
    assert texts(alert) == ["fired", "acknowledged", "acknowledgement_expired"]


def test_alerts_of_a_kind_that_is_no_longer_looked_for_resolve(ends: Iterator[int]) -> None:
    evaluate(ends, finding(), times=2)
    assert take_in(end=next(ends), findings=[], kinds={}) is not None
    assert Alert.objects.get().life is AlertState.RESOLVED


def test_the_database_refuses_a_second_open_alert(alert: Alert) -> None:
    twin = Alert.objects.get()
    twin.pk = None
    twin._state.adding = True
    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save()


def test_a_fingerprint_does_not_depend_on_the_order_of_labels() -> None:
    assert fingerprint_of("k", {"a": "1", "b": "2"}) == fingerprint_of("k", {"b": "2", "a": "1"})
    assert fingerprint_of("k", {"a": "1", "b": "2"}) != fingerprint_of("k", {"a": "1b", "2": ""})
    assert fingerprint_of("k", {"a": "1"}) != fingerprint_of("l", {"a": "1"})


def test_every_change_is_counted(ends: Iterator[int]) -> None:
    before = newest_change()
    evaluate(ends, finding(), times=2)
    middle = newest_change()
    assert middle > before
    handling.comment(actor=OLGA, alert_id=Alert.objects.get().pk, text="looking")
    assert newest_change() == middle + 1
