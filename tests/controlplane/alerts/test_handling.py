"""What people do with alerts, and what stays on record."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from controlplane.accounts.access import Role
from controlplane.accounts.models import AuditEntry, User
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.matchers import Matcher, Operator
from controlplane.alerts.models import Alert
from controlplane.alerts.selectors import active_silences, matched, silenced_by
from controlplane.alerts.services import handling
from controlplane.alerts.services.raising import raise_alert
from controlplane.alerts.services.silencing import end_silence, silence
from controlplane.errors import IllegalTransition, Invalid, NotFound
from tests.controlplane.alerts.conftest import OLGA, finding

pytestmark = pytest.mark.django_db
HERE = (Matcher("instance", Operator.EQUAL, "gpu-1"),)


def test_acknowledging_is_on_the_timeline_and_in_the_audit_log(alert: Alert) -> None:
    until = timezone.now() + timedelta(hours=2)
    handling.acknowledge(actor=OLGA, alert_id=alert.pk, until=until, comment="on it")
    alert.refresh_from_db()
    assert (alert.life, alert.acknowledged_by, alert.acknowledged_until) == (AlertState.ACKNOWLEDGED, "olga", until)
    entry = alert.timeline.last()
    assert entry is not None
    assert entry.actor == "olga"
    assert entry.text == f"until {until:%Y-%m-%d %H:%M} UTC: on it"
    audit = AuditEntry.objects.get(action="alert.acknowledge")
    assert audit.before is not None
    assert audit.after is not None
    assert (audit.before["state"], audit.after["state"], audit.message) == ("firing", "acknowledged", "on it")


def test_saying_the_same_twice_changes_nothing(alert: Alert) -> None:
    for _ in range(2):
        handling.acknowledge(actor=OLGA, alert_id=alert.pk)
    for _ in range(2):
        handling.resolve(actor=OLGA, alert_id=alert.pk)
    assert list(alert.timeline.values_list("what", flat=True)) == ["fired", "acknowledged", "resolved"]
    assert AuditEntry.objects.filter(object_type="alert").count() == 2


def test_an_acknowledgement_cannot_end_in_the_past(alert: Alert) -> None:
    with pytest.raises(Invalid, match="already passed"):
        handling.acknowledge(actor=OLGA, alert_id=alert.pk, until=timezone.now())


def test_a_resolved_alert_cannot_be_acknowledged(alert: Alert) -> None:
    handling.resolve(actor=OLGA, alert_id=alert.pk, comment="was me")
    with pytest.raises(IllegalTransition):
        handling.acknowledge(actor=OLGA, alert_id=alert.pk)


def test_it_is_given_to_people_who_exist(alert: Alert) -> None:
    User.objects.create_user("max", Role.OPERATOR)
    handling.assign(actor=OLGA, alert_id=alert.pk, username="max")
    alert.refresh_from_db()
    assert alert.assignee is not None
    assert alert.assignee.username == "max"
    with pytest.raises(Invalid, match="nobody named eve"):
        handling.assign(actor=OLGA, alert_id=alert.pk, username="eve")
    handling.assign(actor=OLGA, alert_id=alert.pk, username=None)
    alert.refresh_from_db()
    assert alert.assignee is None


@pytest.mark.parametrize("text", ["", "  ", "x" * 5_001])
def test_comments_have_a_text(alert: Alert, text: str) -> None:
    with pytest.raises(Invalid):
        handling.comment(actor=OLGA, alert_id=alert.pk, text=text)


def test_many_at_once_and_what_was_refused(alert: Alert) -> None:
    other = raise_alert(finding=finding("gpu-2"))
    handling.resolve(actor=OLGA, alert_id=other.pk)
    missing = str(uuid4())
    refused = handling.each(handling.acknowledge, [alert.pk, other.pk, missing], actor=OLGA)
    assert refused.keys() == {str(other.pk), missing}
    assert "not possible while resolved" in refused[str(other.pk)]
    alert.refresh_from_db()
    assert alert.life is AlertState.ACKNOWLEDGED
    with pytest.raises(Invalid):
        handling.each(handling.resolve, [], actor=OLGA)


def test_a_silence_needs_matchers_an_end_and_a_reason() -> None:
    now = timezone.now()
    with pytest.raises(Invalid) as refused:
        silence(actor=OLGA, matchers=(), ends_at=now, comment=" ")
    assert refused.value.fields.keys() == {"matchers", "ends_at", "comment"}
    with pytest.raises(Invalid, match="at most 30 days"):
        silence(actor=OLGA, matchers=HERE, ends_at=now + timedelta(days=31), comment="x")


def test_a_preview_shows_what_a_silence_would_match(alert: Alert) -> None:
    raise_alert(finding=finding("gpu-2"))
    assert [found.pk for found in matched(HERE)] == [alert.pk]
    assert len(matched([Matcher("kind", Operator.EQUAL, "stale_metrics")])) == 2


def test_a_silence_ends(alert: Alert) -> None:
    made = silence(actor=OLGA, matchers=HERE, ends_at=timezone.now() + timedelta(hours=1), comment="planned")
    assert silenced_by(alert, active_silences()) == made
    end_silence(actor=OLGA, silence_id=made.pk)
    end_silence(actor=OLGA, silence_id=made.pk)
    assert active_silences() == []
    assert list(AuditEntry.objects.values_list("action", flat=True)) == ["silence.end", "silence.create"]
    with pytest.raises(NotFound):
        end_silence(actor=OLGA, silence_id=uuid4())


def test_a_silence_may_begin_later(alert: Alert) -> None:
    later = timezone.now() + timedelta(hours=1)
    silence(actor=OLGA, matchers=HERE, starts_at=later, ends_at=later + timedelta(hours=1), comment="tonight")
    assert active_silences() == []
