"""The worker's Prometheus metrics. Labels are bounded: instances, configured workloads, and closed sets of kinds."""

from collections.abc import Callable, Iterator
from functools import partial

from router.core.hardware import REFERENCE_BATCH
from router.proxy.breaker import BreakerState
from router.proxy.event_exposition import expose_events
from router.proxy.learnt import learnt
from router.proxy.plane import Plane
from router.proxy.process import most_open_files, open_files, resident_bytes
from router.proxy.stats import InstanceCounts, WorkloadCounts
from router.proxy.text_format import Sample, TextFormat
from router.state.instance import Instance

INSTANCE = "instance_name"
"""Label of an engine. Not ``instance``: Prometheus calls what it scrapes by that name, and would rename ours."""
TTFT_OCTAVES = range(12, 28)
"""4 ms to 134 s."""
TPOT_OCTAVES = range(10, 22)
"""1 ms to 2.1 s."""
E2E_OCTAVES = range(15, 31)
"""33 ms to 18 min."""


def expose(plane: Plane) -> bytes:
    """Return the text of a scrape."""
    plane.stats.roll()
    text = TextFormat()
    _worker(plane, text)
    _instances(plane, text)
    _links(plane, text)
    expose_events(plane, text, INSTANCE)
    _instance_counts(plane, text)
    _workloads(plane, text)
    return text.encode()


def _worker(plane: Plane, text: TextFormat) -> None:
    index = plane.fleet.index
    revision = 0 if plane.table is None else plane.table.revision
    text.gauge("pointsman_in_flight", "Requests being served.", [({}, plane.in_flight)])
    text.gauge("pointsman_clients", "Open client connections.", [({}, plane.open_clients)])
    text.counter(
        "pointsman_clients_refused_total",
        "Client connections turned away: too many are open, and none of them idle.",
        [({}, plane.clients_refused)],
    )
    text.counter(
        "pointsman_clients_made_way_total",
        "Idle client connections closed to let others in.",
        [({}, plane.clients_that_made_way)],
    )
    text.gauge("pointsman_held_bytes", "Bytes of request heads and bodies held.", [({}, plane.held_bytes)])
    text.counter("pointsman_retries_total", "Requests placed elsewhere.", [({}, plane.stats.totals.retries)])
    text.gauge("pointsman_retry_budget", "Retries that may be made now.", [({}, plane.budget.retries_left)])
    suspects = plane.suspects
    text.gauge(
        "pointsman_suspect_bodies", "Request bodies remembered that engines may have died with.", [({}, len(suspects))]
    )
    text.counter(
        "pointsman_engine_killers_total",
        "Requests not tried again after two engines died with them (given_up), or their body came again (refused).",
        [({"what": "given_up"}, suspects.given_up), ({"what": "refused"}, suspects.refused)],
    )
    queued = plane.admission.queued_by_workload()
    text.gauge("pointsman_queued", "Requests that wait for room.", (({"workload": w}, n) for w, n in queued.items()))
    text.counter(
        "pointsman_queue_refused_total",
        "Requests refused at the door.",
        (
            ({"workload": workload, "reason": reason}, n)
            for workload, counts in sorted(plane.stats.totals.workloads.items())
            for reason, n in sorted(counts.refused.items())
        ),
    )
    text.gauge("pointsman_config_revision", "Revision of the configuration in force.", [({}, revision)])
    text.gauge(
        "pointsman_config_refused",
        "1 while a newer configuration was refused.",
        [({}, 0 if plane.config_error is None else 1)],
    )
    text.gauge("pointsman_prefix_blocks", "Prefix blocks at instances, summed.", [({}, index.entries)])
    text.gauge("pointsman_prefix_capacity_blocks", "The most prefix blocks that are kept.", [({}, index.capacity)])
    text.gauge("pointsman_prefix_bytes", "Memory of the prefix index.", [({}, index.memory_bytes)])
    text.counter("pointsman_prefix_evictions_total", "Prefix blocks that made room.", [({}, index.evictions)])
    hotspots = plane.fleet.hotspots
    text.counter("pointsman_hotspot_mitigations_total", "Hotspot mitigations begun.", [({}, hotspots.mitigations)])
    text.counter(
        "pointsman_hotspot_mitigated_requests_total",
        "Requests kept away from the holders of a hot prefix.",
        [({}, hotspots.mitigated_requests)],
    )
    _learnt(plane, text)
    text.gauge("pointsman_resident_bytes", "Resident memory of this process.", [({}, resident_bytes())])
    text.gauge("pointsman_open_files", "Open file descriptors of this process.", [({}, open_files())])
    text.gauge(
        "pointsman_open_files_most", "File descriptors that this process may have open.", [({}, most_open_files())]
    )


def _learnt(plane: Plane, text: TextFormat) -> None:
    samples = [(sample.policy.partition("@")[0], sample) for sample in learnt(plane)]
    text.gauge(
        "pointsman_policy_hardware_exponent",
        "Learnt: how much harder long prefill is judged on a kind of hardware.",
        (({"policy": name, "hardware": kind}, e) for name, s in samples for kind, e in sorted(s.exponents.items())),
    )
    text.gauge(
        "pointsman_policy_reference_ttft_seconds",
        "Learnt: time to first token in the middle of the kinds of hardware.",
        (({"policy": name}, s.reference_s) for name, s in samples if s.reference_s is not None),
    )
    text.gauge(
        "pointsman_policy_high_load",
        "1 while load is high for a policy that lowers an exponent then.",
        (({"policy": name}, int(s.high_load)) for name, s in samples if s.high_load is not None),
    )


def _by_instance(plane: Plane, value: Callable[[Instance], float | None]) -> Iterator[Sample]:
    """Yield a value of every instance; None leaves its series out."""
    for instance in plane.fleet:
        number = value(instance)
        if number is not None:
            yield {INSTANCE: instance.config.name}, number


def _instances(plane: Plane, text: TextFormat) -> None:
    each = partial(_by_instance, plane)
    now_s = plane.loop.time()

    def age_s(instance: Instance) -> float | None:
        return None if instance.reconciled is None else round(now_s - instance.reconciled.received_s, 3)

    text.gauge("pointsman_instance_bs", "Requests at the instance (BS).", each(lambda i: i.view.bs))
    text.gauge(
        "pointsman_instance_requests",
        "Requests booked by this worker and not released.",
        each(lambda i: i.own_requests),
    )
    text.gauge("pointsman_instance_waiting", "Requests waiting at the instance.", each(lambda i: i.view.waiting))
    text.gauge(
        "pointsman_instance_queued_prefill_tokens",
        "Prefill tokens queued at the instance (Q).",
        each(lambda i: i.view.queued_prefill_tokens),
    )
    text.gauge(
        "pointsman_instance_kv_use", "Share of KV in use; absent when not reported.", each(lambda i: i.view.kv_use)
    )
    text.gauge(
        "pointsman_instance_report_age_seconds", "Age of the last report; absent when there is none.", each(age_s)
    )


def _links(plane: Plane, text: TextFormat) -> None:
    each = partial(_by_instance, plane)
    text.gauge(
        "pointsman_instance_metrics_missing",
        "Load metrics that the engine does not have; absent until it was asked.",
        each(lambda i: None if (missing := plane.links[i.slot].missing) is None else len(missing)),
    )
    text.gauge(
        "pointsman_instance_drift_requests",
        "Requests booked here that the engine does not have, over several reports.",
        each(lambda i: plane.links[i.slot].drift.requests),
    )
    text.gauge("pointsman_instance_ejected", "1 while out of rotation after failures.", each(lambda i: int(i.ejected)))
    text.gauge(
        "pointsman_instance_prefix_blocks",
        "Prefix blocks expected at the instance.",
        each(lambda i: plane.fleet.index.resident(i.slot)),
    )
    text.gauge(
        "pointsman_instance_observed_prefill_tokens_per_second",
        "Prefill rate by the requests that it served; absent until enough were.",
        each(lambda i: None if i.observed is None else i.observed.prefill_tokens_per_s),
    )
    text.gauge(
        "pointsman_instance_observed_decode_step_seconds",
        f"Time of a decode step of {REFERENCE_BATCH} sequences, likewise.",
        each(lambda i: None if i.observed is None else i.observed.decode_cost_s),
    )
    text.gauge(
        "pointsman_instance_connections",
        "Open connections to the instance.",
        each(lambda i: plane.links[i.slot].pool.open_connections),
    )
    text.counter(
        "pointsman_instance_ejections_total",
        "Times taken out of rotation.",
        each(lambda i: plane.links[i.slot].breaker.openings),
    )
    text.counter(
        "pointsman_instance_deaths_total",
        "Times found dead after it had lost requests.",
        each(lambda i: plane.links[i.slot].deaths),
    )
    text.gauge(
        "pointsman_instance_breaker_state",
        "Breaker: 0 closed, 1 open, 2 half-open, 3 trial.",
        each(lambda i: _BREAKER_NUMBERS[plane.links[i.slot].breaker.state]),
    )


_BREAKER_NUMBERS = {BreakerState.CLOSED: 0, BreakerState.OPEN: 1, BreakerState.HALF_OPEN: 2, BreakerState.TRIAL: 3}


def _instance_counts(plane: Plane, text: TextFormat) -> None:
    counts = [(i.config.name, plane.stats.totals.instance(i.config.id)) for i in plane.fleet]

    def each(value: Callable[[InstanceCounts], float]) -> Iterator[Sample]:
        return (({INSTANCE: name}, value(c)) for name, c in counts)

    text.counter("pointsman_instance_attempts_total", "Attempts sent to the instance.", each(lambda c: c.requests))
    text.counter(
        "pointsman_instance_failures_total",
        "Failed attempts by kind.",
        (({INSTANCE: name, "kind": kind}, n) for name, c in counts for kind, n in sorted(c.failures.items())),
    )
    text.counter(
        "pointsman_instance_prompt_tokens_total", "Prompt tokens sent (estimated).", each(lambda c: c.prompt_tokens)
    )
    text.counter(
        "pointsman_instance_predicted_hit_tokens_total",
        "Cached prompt tokens, as predicted.",
        each(lambda c: c.predicted_hit_tokens),
    )
    text.counter(
        "pointsman_instance_reported_hit_tokens_total",
        "Cached prompt tokens, as engines reported.",
        each(lambda c: c.reported_hit_tokens),
    )
    text.counter(
        "pointsman_instance_reported_prompt_tokens_total",
        "Prompt tokens of the answers that reported cached ones.",
        each(lambda c: c.reported_prompt_tokens),
    )
    text.histogram_us(
        "pointsman_instance_ttft_seconds",
        "Time to the first token, by instance.",
        TTFT_OCTAVES,
        (({INSTANCE: name}, c.ttft_us, c.ttft_us_sum) for name, c in counts),
    )


def _workloads(plane: Plane, text: TextFormat) -> None:
    counts = sorted(plane.stats.totals.workloads.items())

    def each(value: Callable[[WorkloadCounts], float]) -> Iterator[Sample]:
        return (({"workload": name}, value(c)) for name, c in counts)

    text.counter(
        "pointsman_requests_total",
        "Requests by how they ended.",
        (({"workload": name, "outcome": o}, n) for name, c in counts for o, n in sorted(c.outcomes.items())),
    )
    text.counter(
        "pointsman_shadow_decisions_total", "Decisions of shadow policies.", each(lambda c: c.shadow_decisions)
    )
    text.counter(
        "pointsman_shadow_differs_total", "Shadow decisions for another instance.", each(lambda c: c.shadow_differs)
    )
    text.counter(
        "pointsman_above_cap_total",
        "Requests placed although every instance was above the P-token cap.",
        each(lambda c: c.above_cap),
    )
    text.counter("pointsman_prompt_tokens_total", "Prompt tokens (estimated).", each(lambda c: c.prompt_tokens))
    text.counter("pointsman_output_tokens_total", "Output tokens, where reported.", each(lambda c: c.output_tokens))
    text.counter(
        "pointsman_predicted_hit_tokens_total", "Cached tokens, predicted.", each(lambda c: c.predicted_hit_tokens)
    )
    text.counter(
        "pointsman_reported_hit_tokens_total", "Cached tokens, reported.", each(lambda c: c.reported_hit_tokens)
    )
    text.histogram_us(
        "pointsman_ttft_seconds",
        "Time to the first token.",
        TTFT_OCTAVES,
        (({"workload": name}, c.ttft_us, c.ttft_us_sum) for name, c in counts),
    )
    text.histogram_us(
        "pointsman_tpot_seconds",
        "Mean time per output token after the first, per request.",
        TPOT_OCTAVES,
        (({"workload": name}, c.tpot_us, c.tpot_us_sum) for name, c in counts),
    )
    text.histogram_us(
        "pointsman_e2e_seconds",
        "Time from request to last byte.",
        E2E_OCTAVES,
        (({"workload": name}, c.e2e_us, c.e2e_us_sum) for name, c in counts),
    )
