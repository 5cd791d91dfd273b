"""A world with something of everything, and one way to change each of its sources by itself."""

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import Tenant, TenantUsage
from controlplane.accounts.services import tenants
from controlplane.admission.services import set_admission
from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.matchers import Matcher, Operator
from controlplane.alerts.models import Alert
from controlplane.alerts.services.raising import raise_alert
from controlplane.alerts.services.silencing import silence
from controlplane.aliases.services import put_alias
from controlplane.aliases.target import Target
from controlplane.fleet.models import Instance
from controlplane.lab import tasks
from controlplane.lab.models import SimulationResult, Trace
from controlplane.lab.services.previews import preview_policy
from controlplane.policies.models import ShadowHour, ShadowMoveHour
from controlplane.policies.services import revisions
from controlplane.policies.services.workloads import change_workload
from controlplane.preloading.models import Preload, Reason
from controlplane.slos.models import SloMinute
from controlplane.slos.services import put_slo
from controlplane.telemetry.hub import Hub
from router.config import AdmissionConfig
from router.core.instance import InstanceState
from router.snapshot import InstanceSample, PaceSample, Snapshot
from tests.controlplane.lab.recorded import record_own_traffic
from tests.fakes.snapshots import FakeWorker

STEPS = 60
REQUEST_ID = "the-one"
COUNTERS: Mapping[str, Any] = {
    "requests": 0,
    "errors": 0,
    "prompt_tokens": 0,
    "predicted_hit_tokens": 0,
    "reported_hit_tokens": 0,
    "reported_prompt_tokens": 0,
    "score": {},
    "ttft_us": {},
    "tpot_us": {},
}
HISTOGRAM = {110: 5_000, 150: 100_000}
"""So many values, in buckets that nothing else falls into, that they move every quantile."""


class World:
    """Rows, and a hub that has heard a worker. Each method that begins with ``change`` changes one source alone."""

    def __init__(self, hub: Hub, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.unheard: list[Snapshot] = []
        self._heard_by = ""
        self._monkeypatch = monkeypatch
        self._worker = FakeWorker(3, 60.0)
        self._seq = 10_000
        self.instances = [_instance(name) for name in ("gpu-00", "gpu-01", "gpu-02")]
        self._ids = {one.name: str(one.pk) for one in self.instances}
        for _ in range(STEPS):
            self.last = self._named(self._worker.step())
            hub.accept(self.last)
        sample = self.last.last_decision
        assert sample is not None
        self.decision = replace(sample, request_id=REQUEST_ID)
        _rows()
        self.alert = _alert("gpu-01")
        _silence("config_not_converged")
        _preload(self.instances[0])
        self._say(self._quiet())

    # -- what routers say --

    def change_instances(self, *, first_only: bool = False, **added: Any) -> None:
        """Add to gauges or counters of every instance; a histogram takes the place of an empty one."""
        quiet = self._quiet()
        changed = (_added(one, {} if first_only and place else added) for place, one in enumerate(quiet.instances))
        self._say(replace(quiet, instances=tuple(changed)))

    def change_ranks(self) -> None:
        """Have every instance be two data-parallel ranks, each at a pace of its own that differs from any before."""
        self._seq += 1
        quiet = self._quiet()
        self._say(replace(quiet, instances=tuple(_of_ranks(one, self._seq) for one in quiet.instances)))

    def change_fleet(self) -> None:
        """Have one instance fewer."""
        quiet = self._quiet()
        self._say(replace(quiet, instances=quiet.instances[:-1]))

    def change_workload(self, **added: Any) -> None:
        """Add to counters of the workload."""
        quiet = self._quiet()
        self._say(replace(quiet, workloads=tuple(_added(one, added) for one in quiet.workloads)))

    def change_worker(self, **added: Any) -> None:
        """Add to what the worker says of itself."""
        self._say(_added(self._quiet(), added))

    def change_hearer(self) -> None:
        """Have the worker report to another web process."""
        self._heard_by = "elsewhere:4321"
        self._say(self._quiet())

    def change_workers(self) -> None:
        """Have a second worker say the same."""
        quiet = self._quiet()
        for name in ("another", quiet.worker):
            self._say(replace(quiet, worker=name))

    def change_decision(self) -> None:
        """Have another decision about the same request, with other numbers everywhere, and three fewer before it."""
        factor = 3
        self.decision = replace(
            self.decision,
            prompt_tokens=self.decision.prompt_tokens * factor,
            a=self.decision.a + 1,
            b=self.decision.b + 2,
            time_unix_s=self.decision.time_unix_s + 4_567,
            candidates=tuple(
                replace(
                    one,
                    hit_tokens=one.hit_tokens * factor + 7,
                    new_tokens=one.new_tokens * factor + 5,
                    queued_prefill_tokens=one.queued_prefill_tokens * factor + 3,
                    p_token=one.p_token * factor + 8,
                    bs=one.bs * factor + 1,
                    score=None if one.score is None else one.score * factor**2 * place,
                )
                for place, one in enumerate(self.decision.candidates, start=1)
            ),
        )
        self._say(self._quiet())

    def change_samples(self) -> None:
        """Have more samples of decisions."""
        for number in range(7):
            self.hub.decisions.add(replace(self.decision, request_id=f"other-{time.monotonic_ns()}-{number}"))
        self.hub.decisions.add(replace(self.decision, policy=self.decision.policy))

    def _quiet(self) -> Snapshot:
        """Return the present state, with nothing counted since the last."""
        return replace(
            self.last,
            instances=tuple(replace(one, **COUNTERS, p_token={}) for one in self.last.instances),
            workloads=tuple(
                replace(one, **COUNTERS, output_tokens=0, e2e_us={}, refused={}) for one in self.last.workloads
            ),
            chosen=(),
            last_decision=self.decision,
        )

    def _say(self, snapshot: Snapshot) -> None:
        """Have a snapshot heard once the event loop takes it: the hub's feed belongs to it."""
        self._seq += 1
        self.last = replace(snapshot, seq=self._seq)
        self.unheard.append(self.last)

    def hear(self) -> None:
        """Hear what was said; in the event loop."""
        for snapshot in self.unheard:
            self.hub.accept(snapshot, heard_by=self._heard_by)
        self.unheard.clear()
        self.hub.frame()  # else pages may show the one that was made a moment ago

    def _named(self, snapshot: Snapshot) -> Snapshot:
        """Give a snapshot the ids of the rows, and the workload's name."""
        return replace(
            snapshot,
            instances=tuple(replace(one, id=self._ids[one.name]) for one in snapshot.instances),
            workloads=tuple(replace(one, name="default") for one in snapshot.workloads),
            chosen=tuple(
                replace(point, instance=self._ids[point.instance.removeprefix("id-of-")]) for point in snapshot.chosen
            ),
        )

    # -- rows and constants --

    def patch(self, target: str, value: object) -> None:
        """Put another value in the place of a constant or a setting."""
        self._monkeypatch.setattr(target, value)

    def simulate(self) -> str:
        """Have a preview of a policy run, and return its id."""
        self.patch("django.conf.settings.DATA_DIR", self.folder)
        record_own_traffic()
        made = preview_policy(actor=SYSTEM, name="default", content={"scorer": "round_robin"}, minutes=5)
        tasks.work()
        return str(made.pk)

    def change_result(self) -> None:
        """Have every number of the simulation's result be another one."""
        for row in SimulationResult.objects.all():
            row.comparison = _scaled(row.comparison)
            row.save()

    def change_silences(self) -> None:
        """Silence something else as well."""
        _silence("load_variance")

    def change_preloads(self) -> None:
        """Plan another preload."""
        _preload(self.instances[1])

    def change_alerts(self) -> None:
        """Raise another alert."""
        _alert(f"gpu-{time.monotonic_ns()}")

    def change_row(self, model: Any, **values: Any) -> None:
        """Write other values into every row of a model."""
        model.objects.update(**values)


def _added(one: Any, added: Mapping[str, Any]) -> Any:
    changed = {
        name: change if isinstance(change, dict | str) else (getattr(one, name) or 0) + change
        for name, change in added.items()
    }
    return replace(one, **changed)


def _of_ranks(one: InstanceSample, seq: int) -> InstanceSample:
    part = 1 + (seq % 100) / 10

    def rank(number: int) -> InstanceSample:
        costs = (0.004, 2e-5, 1e-4, 2e-8, 0.01)
        pace = PaceSample(*(cost * (part + number) for cost in costs), seq, seq + number, 0.02, enough=True)
        gauges = {name: getattr(one, name) + seq + number for name in ("bs", "queued_prefill_tokens", "prefix_blocks")}
        kv_use = (seq % 89 + number) / 100
        return replace(one, name=f"{one.name}#{number}", id=f"{one.id}#{number}", pace=pace, kv_use=kv_use, **gauges)

    return replace(one, ranks=(rank(0), rank(1)))


def _instance(name: str) -> Instance:
    now = timezone.now()
    return Instance.objects.create(
        name=name,
        url="http://engine.test",
        hardware="a100-80g",
        state=InstanceState.READY,
        state_since=now - timedelta(hours=3),
        probe_due_at=now + timedelta(days=1),
        probed_at=now - timedelta(hours=5),
        probe_ok=True,
        kv_block_tokens=16,
        kv_capacity_tokens=54_321,
        lease_s=33,
        lease_expires_at=now + timedelta(hours=1),
        epoch=4,
        has_metrics=True,
    )


def _rows() -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    revisions.create_policy(actor=SYSTEM, name="other", content={"b": 2.0})
    tenants.create_tenant(actor=SYSTEM, name="acme", tokens_per_minute=60_001, requests_per_minute=701, concurrent=11)
    tenant = Tenant.objects.get(name="acme")
    tenants.create_key(actor=SYSTEM, tenant=tenant.name, name="prod")
    TenantUsage.objects.create(
        tenant="acme",
        workload="default",
        hour=hour,
        requests=801,
        refused=12,
        prompt_tokens=90_001,
        output_tokens=4_001,
    )
    change_workload(actor=SYSTEM, name="default", concurrent=21)
    set_admission(actor=SYSTEM, rule=AdmissionConfig(instance_requests=2), expected=0)
    put_alias(actor=SYSTEM, name="chat", targets=[Target("m", 70.0), Target("n", 30.0)])
    slo, _ = put_slo(actor=SYSTEM, workload="default", ttft_s=2.5, tpot_s=0.25)
    for back in range(1, 5):
        SloMinute.objects.create(
            slo=slo,
            minute=int(now.timestamp() // 60) - back,
            requests=200,
            errors=3,
            ttft_counted=200,
            ttft_good=180.0,
            tpot_counted=150,
            tpot_good=120.0,
        )
    pair = {"workload": "default", "live_policy": "default@1", "shadow_policy": "other@1", "hour": hour}
    ShadowHour.objects.create(
        **pair,
        decisions=1_234,
        differs=617,
        prompt_tokens=1_000,
        live_hit_tokens=750,
        shadow_hit_tokens=125,
        live_product=1_234_000,
        shadow_product=2_468_000,
    )
    ShadowMoveHour.objects.create(**pair, live="gpu-00", shadow="gpu-01", decisions=617)
    Trace.objects.create(
        name="recorded",
        source="upload",
        format="mooncake",
        hashed=True,
        size_bytes=1_000,
        statistics={
            "requests": 1_111,
            "requests_per_s": 2.2,
            "mean_prompt_tokens": 333.0,
            "mean_output_tokens": 44.0,
            "ideal_hit_ratio": 0.555,
        },
        author="ada",
    )


def _scaled(value: Any) -> Any:
    """Return a document in which every number is larger by a bit more than half."""
    if isinstance(value, dict):
        return {key: _scaled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_scaled(inner) for inner in value]
    if isinstance(value, str):
        return re.sub(r"\b\d+\b", lambda found: str(int(found[0]) + 7), value)
    if isinstance(value, bool) or value is None:
        return value
    return value * 1.6 + 0.013 if isinstance(value, float) else value + 77


def _silence(kind: str) -> None:
    silence(
        actor=SYSTEM,
        matchers=[Matcher("kind", Operator.EQUAL, kind)],
        ends_at=timezone.now() + timedelta(days=3),
        comment="Known",
    )


def _preload(instance: Instance) -> None:
    Preload.objects.create(
        class_id="00112233445566aa",
        instance_id=instance.pk,
        instance_name=instance.name,
        epoch=1,
        reason=Reason.JOINED,
        tokens=3_003,
        prompt_tokens=2_002,
        cached_tokens=101,
        attempts=2,
        due_at=timezone.now(),
    )


def _alert(instance: str) -> Alert:
    return raise_alert(
        finding=Finding(
            kind="stale_metrics",
            severity=Severity.WARNING,
            labels={"instance": instance},
            summary="The engine last reported 31 s ago",
            values={"report_age_s": 31.2},
        )
    )
