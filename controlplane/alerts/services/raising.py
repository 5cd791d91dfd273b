"""Taking findings in: alerts are raised, kept, brought back and resolved, in one transaction an evaluation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.finding import Finding
from controlplane.alerts.kind import Kind
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import OPEN, AlertEvent, AlertState
from controlplane.alerts.models import Alert, Evaluation, Suspicion
from controlplane.alerts.services.announcing import announce_end
from controlplane.alerts.services.timeline import What, move, note
from controlplane.alerts.settling import Patience, Tally, Verdict, count, judge

RECURS_WITHIN = timedelta(minutes=15)
"""A condition that comes back within this of its resolution is the same alert."""
_FORGETFUL = Patience(raise_after=1, resolve_after=1)
"""For conditions of a kind that no longer exists: over at the first evaluation without them."""


@dataclass(slots=True)
class Outcome:
    """What an evaluation did."""

    raised: int = 0
    recurred: int = 0
    resolved: int = 0


@transaction.atomic
def take_in(*, end: int, findings: Iterable[Finding], kinds: Mapping[str, Kind] = KINDS) -> Outcome | None:
    """Count the findings of the window that ends at ``end``; None when that window, or a later one, was counted."""
    now = timezone.now()
    if not _claim(end, now):
        return None
    seen = {finding.fingerprint: finding for finding in findings}
    known = {row.fingerprint: row for row in Suspicion.objects.all()}
    open_alerts = {a.fingerprint: a for a in Alert.objects.select_for_update().filter(state__in=OPEN)}
    outcome = Outcome()
    for fingerprint, finding in seen.items():
        _count_seen(finding, known.get(fingerprint), open_alerts.get(fingerprint), kinds, outcome)
    for fingerprint in (known.keys() | open_alerts.keys()) - seen.keys():
        _count_quiet(fingerprint, known.get(fingerprint), open_alerts.get(fingerprint), kinds, outcome)
    if outcome.raised or outcome.recurred or outcome.resolved or seen:
        alerts_changed()
    return outcome


@transaction.atomic
def raise_alert(*, finding: Finding) -> Alert:
    """Raise an alert for a finding, or keep the one that is open; nobody else can raise a second one meanwhile."""
    now = timezone.now()
    present = _open(finding.fingerprint)
    if present is not None:
        return _keep(present, finding, now)
    try:
        with transaction.atomic():
            alert = _bring_back(finding, now) or _begin(finding, now)
    except IntegrityError:  # another process was faster
        present = _open(finding.fingerprint)
        if present is None:
            raise
        return _keep(present, finding, now)
    alerts_changed()
    return alert


@transaction.atomic
def expire_acknowledgements() -> int:
    """Let acknowledged alerts fire again whose acknowledgement has ended; return how many did."""
    now = timezone.now()
    due = Alert.objects.select_for_update().filter(state=AlertState.ACKNOWLEDGED, acknowledged_until__lte=now)
    expired = list(due)
    for alert in expired:
        by = alert.acknowledged_by
        move(alert, AlertEvent.ACKNOWLEDGEMENT_EXPIRED, now)
        alert.announced = False
        alert.save()
        note(alert, What.ACKNOWLEDGEMENT_EXPIRED, SYSTEM, now, f"acknowledged by {by}")
    if expired:
        alerts_changed()
    return len(expired)


def _claim(end: int, now: datetime) -> bool:
    Evaluation.objects.get_or_create(pk=1)
    return bool(Evaluation.objects.filter(pk=1, bucket__lt=end).update(bucket=end, at=now))


def _open(fingerprint: str) -> Alert | None:
    return Alert.objects.select_for_update().filter(fingerprint=fingerprint, state__in=OPEN).first()


def _count_seen(
    finding: Finding, row: Suspicion | None, alert: Alert | None, kinds: Mapping[str, Kind], outcome: Outcome
) -> None:
    tally = count(_tally(row), seen=True)
    Suspicion.objects.update_or_create(
        fingerprint=finding.fingerprint, defaults={"kind": finding.kind, "seen": tally.seen, "quiet": 0}
    )
    if judge(tally, _patience(finding.kind, kinds), is_open=alert is not None) is not Verdict.STANDS:
        return
    raised = raise_alert(finding=finding)
    if alert is None:
        outcome.recurred += raised.recurrences > 0
        outcome.raised += raised.recurrences == 0


def _count_quiet(
    fingerprint: str, row: Suspicion | None, alert: Alert | None, kinds: Mapping[str, Kind], outcome: Outcome
) -> None:
    kind = alert.kind if alert is not None else row.kind if row is not None else ""
    tally = count(_tally(row), seen=False)
    recurrences = 0 if alert is None else alert.recurrences
    verdict = judge(tally, _patience(kind, kinds), is_open=alert is not None, recurrences=recurrences)
    if verdict is not Verdict.OVER:
        Suspicion.objects.update_or_create(
            fingerprint=fingerprint, defaults={"kind": kind, "seen": 0, "quiet": tally.quiet}
        )
        return
    Suspicion.objects.filter(fingerprint=fingerprint).delete()
    if alert is not None:
        _clear(alert, tally.quiet)
        outcome.resolved += 1


def _tally(row: Suspicion | None) -> Tally:
    return Tally() if row is None else Tally(row.seen, row.quiet)


def _patience(kind: str, kinds: Mapping[str, Kind]) -> Patience:
    return kinds[kind].patience if kind in kinds else _FORGETFUL


def _begin(finding: Finding, now: datetime) -> Alert:
    alert = Alert(
        fingerprint=finding.fingerprint,
        kind=finding.kind,
        severity=finding.severity,
        labels=dict(finding.labels),
        summary=finding.summary[:500],
        values=dict(finding.values),
        state=AlertState.FIRING,
        state_since=now,
        started_at=now,
        last_seen_at=now,
    )
    alert.save(force_insert=True)
    note(alert, What.FIRED, SYSTEM, now, finding.summary)
    return alert


def _bring_back(finding: Finding, now: datetime) -> Alert | None:
    recent = Alert.objects.select_for_update().filter(
        fingerprint=finding.fingerprint, state=AlertState.RESOLVED, resolved_at__gte=now - RECURS_WITHIN
    )
    alert = recent.order_by("-resolved_at").first()
    if alert is None:
        return None
    move(alert, AlertEvent.RECURRED, now)
    alert.recurrences += 1
    alert.announced = False
    _take_over(alert, finding, now)
    note(alert, What.RECURRED, SYSTEM, now, finding.summary)
    return alert


def _keep(alert: Alert, finding: Finding, now: datetime) -> Alert:
    move(alert, AlertEvent.SEEN, now)
    if alert.severity != finding.severity:
        note(alert, What.SEVERITY, SYSTEM, now, f"{alert.severity} became {finding.severity.value}")
    _take_over(alert, finding, now)
    return alert


def _take_over(alert: Alert, finding: Finding, now: datetime) -> None:
    alert.severity = finding.severity
    alert.summary = finding.summary[:500]
    alert.values = dict(finding.values)
    alert.last_seen_at = now
    alert.save()


def _clear(alert: Alert, quiet: int) -> None:
    now = timezone.now()
    move(alert, AlertEvent.CLEARED, now)
    alert.resolved_by = SYSTEM.label
    alert.save()
    evaluations = "evaluation" if quiet == 1 else "evaluations in a row"
    note(alert, What.RESOLVED, SYSTEM, now, f"not seen in {quiet} {evaluations}")
    announce_end(alert)
