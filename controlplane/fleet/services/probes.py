"""Taking probe results in: facts about the engine, rows in a row, and the events that follow."""

from collections.abc import Sequence
from copy import copy
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from controlplane.fleet.credentials import FAULT, authorization_of, credentials_fault
from controlplane.fleet.hysteresis import Standing, Thresholds, Verdict, judge
from controlplane.fleet.lifecycle import PROBED, Event, possible
from controlplane.fleet.models import Instance, ModelsSource
from controlplane.fleet.probe import ProbeResult, ProbeTarget, probe_all
from controlplane.fleet.services.leases import lease_holds
from controlplane.fleet.services.moves import follow
from controlplane.publication import configuration_changed
from router.core.instance import InstanceState

_UNUSABLE = ProbeResult(False, (FAULT,))
_DOCUMENT_FIELDS = ("served_models", "kv_block_tokens", "kv_capacity_tokens", "probed_ranks", "epoch")
_PROBED_FIELDS = (
    *_DOCUMENT_FIELDS,
    "engine",
    "has_metrics",
    "kv_event_endpoints",
    "process_started_unix_s",
    "probe_ok",
    "probe_reasons",
    "probe_failures",
    "probe_successes",
)


@transaction.atomic
def claim_due(limit: int) -> list[Instance]:
    """Return instances whose probe is due, each to one caller only, and set their next one."""
    now = timezone.now()
    due = Instance.objects.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
    claimed = list(due.filter(probe_due_at__lte=now, state__in=PROBED).order_by("probe_due_at")[:limit])
    _set_next([instance.pk for instance in claimed], now)
    return claimed


@transaction.atomic
def claim_one(instance_id: UUID | str) -> list[Instance]:
    """Return one instance, whenever its probe is due; nothing when it is gone."""
    known = list(Instance.objects.select_for_update().filter(pk=instance_id, state__in=PROBED))
    _set_next([instance.pk for instance in known], timezone.now())
    return known


def probe_instances(instances: Sequence[Instance]) -> None:
    """Probe instances concurrently and take the results in; those that brought nothing new cost one UPDATE in all."""
    _begin(instances)
    usable = [instance for instance in instances if credentials_fault(instance) is None]
    found = probe_all([_target(instance) for instance in usable], settings.PROBE_TIMEOUT_S)
    results = dict(zip((instance.pk for instance in usable), found, strict=True))
    unchanged = []
    for instance in instances:
        result = results.get(instance.pk, _UNUSABLE)
        if _brings_nothing_new(instance, result):
            unchanged.append(instance.pk)
        else:
            take_in(instance_id=instance.pk, url=instance.url, result=result)
    Instance.objects.filter(pk__in=unchanged).update(probed_at=timezone.now())


@transaction.atomic
def take_in(*, instance_id: UUID | str, url: str, result: ProbeResult) -> None:
    """Count one result in; one of an address that the instance has left is dropped."""
    instance = Instance.objects.select_for_update().filter(pk=instance_id, url=url, state__in=PROBED).first()
    if instance is None:
        return
    before = _values(instance, _DOCUMENT_FIELDS)
    verdict = _apply(instance, result)
    instance.probed_at = timezone.now()
    if verdict.event is not None and follow(instance, verdict.event, _reason(verdict, result)):
        return
    instance.save()
    if before != _values(instance, _DOCUMENT_FIELDS):
        configuration_changed()


def _set_next(identities: Sequence[UUID], now: datetime) -> None:
    following = now + timedelta(seconds=settings.PROBE_INTERVAL_S)
    Instance.objects.filter(pk__in=identities).update(probe_due_at=following)


def _target(instance: Instance) -> ProbeTarget:
    authorization = authorization_of(instance)
    headers = (("Authorization", authorization),) if authorization else ()
    return ProbeTarget(instance.url, headers, thorough=instance.probe_ok is not True)


def _brings_nothing_new(instance: Instance, result: ProbeResult) -> bool:
    trial = copy(instance)
    verdict = _apply(trial, result)
    return verdict.event is None and _values(trial, _PROBED_FIELDS) == _values(instance, _PROBED_FIELDS)


def _apply(instance: Instance, result: ProbeResult) -> Verdict:
    """Write a result into an instance, in memory, and return what follows from it."""
    verdict = _verdict(instance, result)
    if result.ok:
        _learn(instance, result, verdict.event)
    instance.probe_ok = result.ok
    instance.probe_reasons = list(result.reasons)
    instance.probe_failures, instance.probe_successes = verdict.failures, verdict.successes
    return verdict


def _values(instance: Instance, names: Sequence[str]) -> list[object]:
    return [getattr(instance, name) for name in names]


def _begin(instances: Sequence[Instance]) -> None:
    """Show that a first probe is under way."""
    for instance in instances:
        if instance.life is InstanceState.REGISTERED:
            with transaction.atomic():
                row = Instance.objects.select_for_update().get(pk=instance.pk)
                if row.life is InstanceState.REGISTERED:
                    follow(row, Event.PROBE, "first probe under way")


def _verdict(instance: Instance, result: ProbeResult) -> Verdict:
    started = result.metrics.process_started_unix_s if result.metrics else None
    standing = Standing(
        instance.life, instance.probe_failures, instance.probe_successes, instance.process_started_unix_s
    )
    limits = Thresholds(settings.PROBE_FAILURES_DOWN, settings.PROBE_SUCCESSES_UP)
    verdict = judge(standing, result.ok, started, limits)
    barred = verdict.event in {Event.UP, Event.RETURNED} and not lease_holds(instance)
    impossible = verdict.event is not None and not possible(instance.life, verdict.event)
    return Verdict(verdict.failures, verdict.successes, None) if barred or impossible else verdict


def _learn(instance: Instance, result: ProbeResult, event: Event | None) -> None:
    """Take over what the engine says of itself; declared models stay as declared."""
    if instance.models_source == ModelsSource.PROBED:
        instance.served_models = list(result.models)
    if result.event_endpoints is not None:
        instance.kv_event_endpoints = list(result.event_endpoints)
    instance.has_metrics = result.metrics is not None and result.metrics.engine is not None
    facts = result.metrics
    started = facts.process_started_unix_s if facts else None
    if _cache_lost(instance, event, started):
        instance.epoch += 1
    instance.process_started_unix_s = started if started is not None else instance.process_started_unix_s
    if facts is not None:
        instance.engine = facts.engine or instance.engine
        instance.kv_block_tokens = facts.kv_block_tokens or instance.kv_block_tokens
        instance.kv_capacity_tokens = facts.kv_capacity_tokens or instance.kv_capacity_tokens
        instance.probed_ranks = facts.ranks or instance.probed_ranks


def _cache_lost(instance: Instance, event: Event | None, started: float | None) -> bool:
    known = instance.process_started_unix_s
    if started is not None and known is not None:
        return started != known
    return event is Event.UP and instance.life is InstanceState.UNREACHABLE


def _reason(verdict: Verdict, result: ProbeResult) -> str:
    if not result.ok:
        return f"{verdict.failures} probes in a row failed: {' '.join(result.reasons)}"
    return {
        Event.UP: "the probe succeeded; its cache is taken as empty",
        Event.RETURNED: f"{verdict.successes} probes in a row succeeded; it is the same engine process as before",
        Event.RESTARTED: "the engine process was restarted",
    }.get(verdict.event or Event.UP, "")
