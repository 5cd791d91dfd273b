"""What changes the row of the admission app."""

from collections import defaultdict

from django.db import transaction
from django.utils import timezone
from msgspec.structs import asdict

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.admission.models import AdmissionSettings
from controlplane.admission.selectors import ONLY_PK
from controlplane.errors import Invalid, RevisionRequired, StaleRevision
from controlplane.publication import configuration_changed
from router.config import AdmissionConfig, admission_faults

MOST_WAIT_S = 3_600.0
"""No client waits for longer."""
MOST_REQUESTS = 2**31 - 1
"""What a row can hold."""


@transaction.atomic
def set_admission(*, actor: Actor, rule: AdmissionConfig, expected: int | None) -> AdmissionSettings:
    """Put these settings in the place of the present ones; the same again changes nothing.

    :param expected: the revision that the caller has seen.
    :raises RevisionRequired: without ``expected``.
    :raises StaleRevision: when the settings are of another revision by now.
    :raises Invalid: naming every field that cannot be.
    """
    _check(rule)
    AdmissionSettings.objects.get_or_create(pk=ONLY_PK)
    row = AdmissionSettings.objects.select_for_update().get(pk=ONLY_PK)
    _check_expected(row, expected)
    before, after = asdict(row.rule), asdict(rule)
    if after != before:
        for field, value in after.items():
            setattr(row, field, value)
        row.revision += 1
        row.updated_at, row.updated_by = timezone.now(), actor.label
        row.save()
        target = ("admission", row.pk, "admission")
        record(actor=actor, action="admission.change", target=target, before=before, after=after)
        configuration_changed()
    return row


def _check(rule: AdmissionConfig) -> None:
    faults: defaultdict[str, list[str]] = defaultdict(list)
    for field, fault in admission_faults(rule):
        faults[field].append(f"{fault}.")
    if rule.queue_wait_s > MOST_WAIT_S:
        faults["queue_wait_s"].append(f"{rule.queue_wait_s:g} is above {MOST_WAIT_S:g} s.")
    for field in ("instance_requests", "queue_requests"):
        if (getattr(rule, field) or 0) > MOST_REQUESTS:
            faults[field].append(f"It is above {MOST_REQUESTS}.")
    if faults:
        raise Invalid(faults)


def _check_expected(row: AdmissionSettings, expected: int | None) -> None:
    if expected is None:
        raise RevisionRequired(
            f'Send If-Match: "{row.revision}" with the revision that you have seen.', live=row.revision
        )
    if expected != row.revision:
        who = f", by {row.updated_by}" if row.updated_by else ""
        raise StaleRevision(
            f"The settings are at revision {row.revision}{who}, and no longer at {expected}.", live=row.revision
        )
