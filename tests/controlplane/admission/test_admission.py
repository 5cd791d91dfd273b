"""Admission: set as a whole, never over somebody else's change, told to routers."""

import pytest

from controlplane.accounts.actor import SYSTEM, Actor
from controlplane.accounts.models import AuditEntry
from controlplane.admission.models import AdmissionSettings
from controlplane.admission.selectors import admission
from controlplane.admission.services import set_admission
from controlplane.bridge.publisher import current
from controlplane.errors import Invalid, RevisionRequired, StaleRevision
from router.config import AdmissionConfig, parse_config

pytestmark = pytest.mark.django_db
NARROW = AdmissionConfig(instance_requests=8, queue_requests=20, queue_wait_s=2.5, batch_window_ms=1.0)


def told() -> AdmissionConfig:
    return parse_config(current()[1]).admission


def test_the_defaults_of_the_router_hold_until_somebody_sets_anything() -> None:
    assert (admission().revision, admission().rule) == (0, AdmissionConfig())
    assert told() == AdmissionConfig()
    assert not AdmissionSettings.objects.exists(), "looking writes nothing"


def test_what_is_set_is_told_and_on_record() -> None:
    row = set_admission(actor=Actor("ada"), rule=NARROW, expected=0)
    assert (row.revision, row.updated_by) == (1, "ada")
    assert told() == NARROW
    entry = AuditEntry.objects.get(object_type="admission")
    assert entry.before == {
        "instance_requests": None,
        "queue_requests": 1000,
        "queue_wait_s": 30.0,
        "batch_window_ms": 0.0,
    }
    assert entry.after is not None
    assert entry.after["instance_requests"] == 8


def test_the_same_again_changes_nothing() -> None:
    set_admission(actor=SYSTEM, rule=NARROW, expected=0)
    before = current()[0]
    assert set_admission(actor=SYSTEM, rule=NARROW, expected=1).revision == 1
    assert current()[0] == before
    assert AuditEntry.objects.filter(object_type="admission").count() == 1


def test_nobody_writes_over_what_they_have_not_seen() -> None:
    set_admission(actor=Actor("ada"), rule=NARROW, expected=0)
    with pytest.raises(StaleRevision, match="at revision 1, by ada, and no longer at 0"):
        set_admission(actor=SYSTEM, rule=AdmissionConfig(), expected=0)
    with pytest.raises(RevisionRequired):
        set_admission(actor=SYSTEM, rule=AdmissionConfig(), expected=None)
    assert told() == NARROW


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (AdmissionConfig(instance_requests=0), "instance_requests"),
        (AdmissionConfig(queue_requests=0), "queue_requests"),
        (AdmissionConfig(queue_requests=2**31), "queue_requests"),
        (AdmissionConfig(queue_wait_s=0.0), "queue_wait_s"),
        (AdmissionConfig(queue_wait_s=float("nan")), "queue_wait_s"),
        (AdmissionConfig(queue_wait_s=4_000.0), "queue_wait_s"),
        (AdmissionConfig(batch_window_ms=11.0), "batch_window_ms"),
        (AdmissionConfig(batch_window_ms=-1.0), "batch_window_ms"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_field(rule: AdmissionConfig, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        set_admission(actor=SYSTEM, rule=rule, expected=0)
    assert list(refused.value.fields) == [field]
    assert told() == AdmissionConfig()
