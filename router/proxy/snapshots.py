"""Builds the worker's snapshot from the plane and the counts that were not delivered yet."""

import msgspec

from router import __version__
from router.proxy.decision_sample import decision_sample
from router.proxy.learnt import learnt
from router.proxy.plane import Plane
from router.proxy.process import resident_bytes
from router.proxy.recent_decisions import RecentDecision
from router.proxy.stats import Tally
from router.snapshot import (
    DecisionSample,
    EventsSample,
    Explained,
    InstanceSample,
    PaceSample,
    ShadowMove,
    Snapshot,
    TenantSample,
    WorkloadSample,
)
from router.state.instance import Instance
from router.state.pace.pace_meter import PaceMeter


class SnapshotTimes(msgspec.Struct, frozen=True):
    """When a snapshot is made. Unix and monotonic seconds."""

    unix_s: float
    monotonic_s: float
    interval_s: float


class WorkerIdentity(msgspec.Struct, frozen=True):
    """Which worker speaks."""

    name: str
    started_unix_s: float


def build_snapshot(plane: Plane, tally: Tally, identity: WorkerIdentity, seq: int, times: SnapshotTimes) -> Snapshot:
    """Return the state of the plane, with the counts of ``tally``."""
    index = plane.fleet.index
    newest = plane.recent.newest()
    return Snapshot(
        worker=identity.name,
        version=__version__,
        started_unix_s=identity.started_unix_s,
        seq=seq,
        time_unix_s=times.unix_s,
        interval_s=times.interval_s,
        config_revision=0 if plane.table is None else plane.table.revision,
        config_error=plane.config_error,
        in_flight=plane.in_flight,
        prefix_blocks=index.entries,
        prefix_bytes=index.memory_bytes,
        prefix_capacity_blocks=index.capacity,
        rss_bytes=resident_bytes(),
        instances=tuple(_instance(plane, instance, tally, times.monotonic_s) for instance in plane.fleet),
        workloads=tuple(_workload(plane, name, tally) for name in sorted(_workload_names(plane, tally))),
        chosen=tuple(tally.chosen),
        last_decision=None if newest is None else _sample(newest, times),
        hot_window_s=plane.fleet.hotspots.covered_s(times.monotonic_s),
        hot_window_whole=plane.fleet.hotspots.covers_all(times.monotonic_s),
        hot_arrivals=plane.fleet.hotspots.arrivals,
        hot_classes=plane.texts.annotated(plane.fleet.hot_classes()),
        tenants=tuple(
            TenantSample(
                tenant=tenant,
                workload=workload,
                requests=counts.requests,
                refused=counts.refused,
                prompt_tokens=counts.prompt_tokens,
                output_tokens=counts.output_tokens,
            )
            for (tenant, workload), counts in tally.tenants.items()
        ),
        learnt=learnt(plane),
        quotas=plane.quotas.uses(times.monotonic_s),
    )


def explain(plane: Plane, request_id: str, times: SnapshotTimes) -> Explained:
    """Return the newest decision about a request, as far back as the worker remembers."""
    recent = plane.recent.find(request_id)
    if recent is None:
        return Explained(request_id, None)
    return Explained(request_id, _sample(recent, times))


def _sample(recent: RecentDecision, times: SnapshotTimes) -> DecisionSample:
    return decision_sample(recent, times.unix_s - (times.monotonic_s - recent.at_s))


def _instance(plane: Plane, instance: Instance, tally: Tally, now_s: float) -> InstanceSample:
    view, counts, known = instance.view, tally.instance(instance.config.id), instance.reconciled
    return InstanceSample(
        id=instance.config.id,
        name=view.name,
        state=view.state,
        ejected=view.ejected,
        bs=view.bs,
        running=view.running,
        waiting=view.waiting,
        own_requests=view.own_requests,
        queued_prefill_tokens=view.queued_prefill_tokens,
        kv_use=view.kv_use,
        reported_running=None if known is None else known.report.running,
        reported_waiting=None if known is None else known.report.waiting,
        reported_age_s=None if known is None else now_s - known.received_s,
        prefix_blocks=plane.fleet.index.resident(instance.slot),
        models=instance.config.models,
        requests=counts.requests,
        errors=counts.errors,
        prompt_tokens=counts.prompt_tokens,
        predicted_hit_tokens=counts.predicted_hit_tokens,
        reported_hit_tokens=counts.reported_hit_tokens,
        reported_prompt_tokens=counts.reported_prompt_tokens,
        p_token=counts.p_token,
        score=counts.score,
        ttft_us=counts.ttft_us,
        tpot_us=counts.tpot_us,
        pace=_pace(plane.links[instance.slot].pace),
        events=EventsSample() if plane.events is None else plane.events.sample(plane.links[instance.slot]),
    )


def _pace(meter: PaceMeter) -> PaceSample | None:
    fit = meter.fit
    if fit is None:
        return None
    costs = fit.profile
    return PaceSample(
        costs.t0_s,
        costs.prefill_s_per_token,
        costs.decode_s_per_sequence,
        costs.decode_s_per_kv_token,
        fit.first_token_overhead_s,
        meter.rows.prefill_added,
        meter.rows.decode_added,
        fit.relative_error,
        meter.observed is not None,
    )


def _workload_names(plane: Plane, tally: Tally) -> set[str]:
    return set(tally.workloads) | (set() if plane.table is None else set(plane.table.policies))


def _workload(plane: Plane, name: str, tally: Tally) -> WorkloadSample:
    counts = tally.workload(name)
    policy = None if plane.table is None else plane.table.policies.get(name)
    shadow = None if plane.table is None else plane.table.shadows.get(name)
    return WorkloadSample(
        name=name,
        policy="" if policy is None else policy.label,
        requests=counts.requests,
        errors=counts.errors,
        prompt_tokens=counts.prompt_tokens,
        output_tokens=counts.output_tokens,
        predicted_hit_tokens=counts.predicted_hit_tokens,
        reported_hit_tokens=counts.reported_hit_tokens,
        reported_prompt_tokens=counts.reported_prompt_tokens,
        score=counts.score,
        ttft_us=counts.ttft_us,
        tpot_us=counts.tpot_us,
        e2e_us=counts.e2e_us,
        shadow_policy=None if shadow is None else shadow.label,
        shadow_decisions=counts.shadow_decisions,
        shadow_differs=counts.shadow_differs,
        shadow_moves=tuple(ShadowMove(*pair, number) for pair, number in counts.shadow_moves.items()),
        shadow_prompt_tokens=counts.shadow_prompt_tokens,
        shadow_live_hit_tokens=counts.shadow_live_hit_tokens,
        shadow_hit_tokens=counts.shadow_hit_tokens,
        shadow_live_product=counts.shadow_live_product,
        shadow_product=counts.shadow_product,
        above_cap=counts.above_cap,
        queued=plane.admission.queued_by_workload().get(name, 0),
        inside=plane.admission.inside(name),
        refused=counts.refused,
    )
