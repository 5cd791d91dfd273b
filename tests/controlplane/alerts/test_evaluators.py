"""Every kind of alert: a window in which it must be found, and windows in which it must not."""

from collections.abc import Sequence
from typing import Any

import pytest

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.window import Published, SloBurn, Window
from controlplane.telemetry.rollup import ClassRollup, TenantRollup, WorkerRollup, WorkloadRollup
from router.core.histogram import Counts, bucket_of
from router.core.instance import InstanceState
from tests.controlplane.alerts.rollups_of import fleet, instance, rollup, window


def found(kind: str, seen: Window, **limits: object) -> Sequence[Finding]:
    """Return what a kind finds in a window."""
    entry = KINDS[kind]
    return list(entry.evaluate(seen, entry.limits_with(limits)))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_where_nothing_was_reported(kind: str) -> None:
    assert found(kind, window()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_in_an_even_fleet(kind: str) -> None:
    rows = [instance(f"gpu-{n}", bs=6, requests=60, score={40: 60}) for n in range(4)]
    seen = [rollup(*rows, ago=ago, config_revision=7) for ago in range(1, 60)]
    assert found(kind, window(*seen, fleet=fleet(*(f"gpu-{n}" for n in range(4))), published=Published(7, 100.0))) == []


def test_every_kind_says_what_to_do() -> None:
    for kind in KINDS.values():
        assert kind.title
        assert kind.meaning.endswith(".")
        assert kind.what_to_do


# -- hotspot ---------------------------------------------------------------------------------------------------------
def hot(requests: int, arrivals: int, *holders: str, worker: str = "router-0") -> WorkerRollup:
    """A worker's report of one class in a fleet of eight."""
    row = ClassRollup(
        id="3f2a" * 4,
        model="m",
        prefix_tokens=512,
        requests=requests,
        holders=tuple(f"id-{name}" for name in holders),
        watched=False,
        mitigated=False,
    )
    rows = [instance(f"gpu-{n}") for n in range(8)]
    return rollup(*rows, worker=worker, hot_arrivals=arrivals, classes={row.id: row})


def test_a_class_with_more_than_the_share_of_its_holders_is_hot() -> None:
    (finding,) = found("hotspot_class", window(hot(130, 1_000, "gpu-0")))
    assert finding.labels == {"prefix_class": "3f2a" * 4}
    assert finding.values["share"] == 0.13
    assert finding.values["holders"] == 1
    assert "13% of all requests, and 1 of 8" in finding.summary


def test_a_class_with_just_the_share_of_its_holders_is_not_hot() -> None:
    assert found("hotspot_class", window(hot(125, 1_000, "gpu-0"))) == []


def test_a_class_that_everybody_holds_is_never_hot() -> None:
    assert found("hotspot_class", window(hot(1_000, 1_000, *(f"gpu-{n}" for n in range(8))))) == []


def test_reports_of_workers_are_added_up() -> None:
    alone = hot(70, 500, "gpu-0")
    assert found("hotspot_class", window(alone))
    calm = hot(5, 500, "gpu-1", worker="router-1")
    assert found("hotspot_class", window(alone, calm)) == []  # 75 of 1000, and two holders of eight


# -- tail ------------------------------------------------------------------------------------------------------------
def scored(*groups: tuple[float, int]) -> Counts:
    """A histogram of (value, count)."""
    return {bucket_of(value): count for value, count in groups}


def tail_window(*judged: tuple[float, int]) -> Window:
    """Ten minutes at 1000, then twenty seconds of something else."""
    usual = [
        rollup(workloads=(WorkloadRollup(name="coder", policy="p", score=scored((1_000, 50))),), ago=ago)
        for ago in range(3, 60)
    ]
    newest = WorkloadRollup(name="coder", policy="p", score=scored(*judged))
    return window(*usual, rollup(workloads=(newest,)))


def test_a_heavy_tail_is_found() -> None:
    (finding,) = found("score_tail", tail_window((1_000, 80), (8_000, 20)))
    assert finding.labels == {"workload": "coder"}
    assert finding.values["decisions_above"] == 20
    assert finding.values["share_above"] == 0.2


@pytest.mark.parametrize("judged", [[(1_000, 100)], [(3_000, 100)], [(1_000, 95), (8_000, 5)], [(8_000, 10)]])
def test_a_tail_that_is_usual_or_small_is_not(judged: list[tuple[float, int]]) -> None:
    assert found("score_tail", tail_window(*judged)) == []


def test_the_factor_can_be_set() -> None:
    assert found("score_tail", tail_window((3_000, 100)), factor=2.0)


# -- load ------------------------------------------------------------------------------------------------------------
def test_one_overloaded_instance_is_found() -> None:
    rows = [instance("gpu-0", bs=40), *(instance(f"gpu-{n}", bs=4) for n in range(1, 4))]
    (finding,) = found("load_variance", window(rollup(*rows)))
    assert finding.values["busiest"] == "gpu-0"
    assert finding.values["max_over_mean"] == pytest.approx(40 / 13, abs=1e-3)


def test_a_little_load_that_is_uneven_is_no_alert() -> None:
    rows = [instance("gpu-0", bs=4), *(instance(f"gpu-{n}", bs=0) for n in range(1, 4))]
    assert found("load_variance", window(rollup(*rows))) == []


def test_own_bookings_of_workers_add_up_and_engine_reports_do_not() -> None:
    busy = instance("gpu-0", bs=20)
    seen = window(rollup(busy, instance("gpu-1", bs=1), worker="a"), rollup(busy, instance("gpu-1", bs=1), worker="b"))
    assert seen.instances()["id-gpu-0"].own_mean == 40
    assert seen.instances()["id-gpu-0"].reported_mean == 20


def test_a_starving_instance_is_found() -> None:
    rows = [instance("gpu-0", bs=0, requests=0), *(instance(f"gpu-{n}", bs=6, requests=50) for n in range(1, 4))]
    (finding,) = found("starvation", window(rollup(*rows)))
    assert finding.labels == {"instance": "gpu-0"}


def test_an_instance_out_of_rotation_does_not_starve() -> None:
    out = instance("gpu-0", bs=0, requests=0, state=InstanceState.DRAINING)
    rows = [out, *(instance(f"gpu-{n}", bs=6, requests=50) for n in range(1, 4))]
    assert found("starvation", window(rollup(*rows))) == []


# -- agreement -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("age", [None, 30.0])
def test_an_old_or_missing_report_is_found(age: float | None) -> None:
    row = instance("gpu-0", youngest_report_age_s=age)
    (finding,) = found("stale_metrics", window(rollup(row), fleet=fleet("gpu-0")))
    assert finding.labels == {"instance": "gpu-0"}


def test_an_engine_without_metrics_has_no_stale_ones() -> None:
    row = instance("gpu-0", youngest_report_age_s=None)
    assert found("stale_metrics", window(rollup(row), fleet=fleet("gpu-0", has_metrics=False))) == []


@pytest.mark.parametrize(("booked", "reported", "word"), [(2, 30, "more"), (30, 2, "fewer")])
def test_drift_is_found_either_way(booked: int, reported: int, word: str) -> None:
    row = instance("gpu-0", own_sum=booked * 40, bs_sum=max(booked, reported) * 40, reported_sum=reported * 40)
    (finding,) = found("booking_drift", window(rollup(row)))
    assert f"28 requests {word} than routers booked" in finding.summary


def test_a_wrong_prediction_of_hits_is_found() -> None:
    row = instance(
        "gpu-0",
        prompt_tokens=50_000,
        predicted_hit_tokens=40_000,
        reported_prompt_tokens=50_000,
        reported_hit_tokens=0,
    )
    (finding,) = found("hit_mismatch", window(rollup(row)))
    assert finding.values == {
        "predicted_hit_ratio": 0.8,
        "reported_hit_ratio": 0.0,
        "reported_prompt_tokens": 50_000,
    }


def test_hits_predicted_from_events_that_differ_are_found_answer_by_answer() -> None:
    checked = {"checked": 64, "check_wrong_share": 0.75, "check_error_blocks": 12.0}
    (finding,) = found("hit_mismatch", window(rollup(instance("a", disbelieved=True, **checked), instance("b"))))
    assert finding.labels == {"instance": "a"}
    assert finding.values == {"wrong_share": 0.75, "error_blocks_p95": 12.0, "answers": 64}
    assert "75% of its last 64 answers; routers estimate its cache meanwhile" in finding.summary


@pytest.mark.parametrize("checked", [{"checked": 64, "check_wrong_share": 0.3}, {"checked": 9, "check_wrong_share": 1}])
def test_few_wrong_or_few_answers_from_events_are_no_mismatch(checked: dict[str, Any]) -> None:
    assert found("hit_mismatch", window(rollup(instance("a", **checked)))) == []


# -- cap -------------------------------------------------------------------------------------------------------------
def test_requests_above_the_cap_are_found_by_workload() -> None:
    seen = [
        WorkloadRollup(name="chat", policy="strict@3", requests=100, above_cap=12),
        WorkloadRollup(name="calm", policy="strict@3", requests=1_000, above_cap=12),
        WorkloadRollup(name="few", policy="strict@3", requests=20, above_cap=9),
    ]
    (finding,) = found("above_cap", window(rollup(workloads=tuple(seen))))
    assert finding.labels == {"workload": "chat"}
    assert finding.values["share_above_cap"] == 0.12
    assert finding.values["policy"] == "strict@3"


# -- door ------------------------------------------------------------------------------------------------------------
def at_the_door(name: str, *, requests: int, waiting: int = 0, **refused: int) -> WorkloadRollup:
    return WorkloadRollup(
        name=name, policy="p@1", requests=requests, samples=40, waiting_sum=40 * waiting, refused=refused
    )


def test_refusals_at_the_door_are_found_by_workload() -> None:
    seen = [
        at_the_door("chat", requests=100, queue_full=9, queue_timeout=3),
        at_the_door("calm", requests=10_000, queue_full=12),
        at_the_door("few", requests=20, queue_full=9),
    ]
    (finding,) = found("admission", window(rollup(workloads=tuple(seen))))
    assert finding.labels == {"workload": "chat"}
    assert finding.values["refused"] == 12
    assert finding.values["refused_queue_timeout"] == 3
    assert "9 too many waited already, 3 waited too long" in finding.summary


def test_long_waits_are_found_by_littles_law_over_all_workers() -> None:
    slow, quick = at_the_door("chat", requests=30, waiting=4), at_the_door("code", requests=600, waiting=4)
    (finding,) = found("admission", window(*(rollup(workloads=(slow, quick), worker=name) for name in ("a", "b"))))
    assert finding.labels == {"workload": "chat"}
    assert (finding.values["waiting_mean"], finding.values["wait_mean_s"]) == (8.0, 8.0)
    stuck = at_the_door("chat", requests=0, waiting=2)
    assert found("admission", window(rollup(workloads=(stuck,)))), "nothing leaves: all of them wait"


def test_nobody_at_the_door_is_nothing_to_tell() -> None:
    assert found("admission", window(rollup(workloads=(at_the_door("chat", requests=500),)))) == []


# -- presence --------------------------------------------------------------------------------------------------------
def test_an_unreachable_instance_is_critical() -> None:
    (finding,) = found("instance_unreachable", window(fleet=fleet("gpu-0", state=InstanceState.UNREACHABLE)))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == "gpu-0 is unreachable: because"


def test_a_worker_that_is_behind_is_found_once_it_is_late() -> None:
    seen = rollup(config_revision=6)
    assert found("config_not_converged", window(seen, published=Published(7, 5.0))) == []
    (finding,) = found("config_not_converged", window(seen, published=Published(7, 60.0)))
    assert finding.labels == {"worker": "router-0"}
    assert finding.severity is Severity.WARNING


def test_a_refused_configuration_is_critical_at_once() -> None:
    seen = rollup(config_revision=6, config_error="policy x: no")
    (finding,) = found("config_not_converged", window(seen, published=Published(7, 0.0)))
    assert finding.severity is Severity.CRITICAL
    assert "policy x: no" in finding.summary


def test_a_silent_worker_is_found_and_forgotten() -> None:
    (finding,) = found("router_silent", window(rollup(ago=6)))
    assert finding.values == {"silent_s": 60}
    assert found("router_silent", window(rollup(ago=2))) == []


def test_a_used_up_quota_is_found() -> None:
    usage = TenantRollup(name="acme", requests=50, refused=50)
    (finding,) = found("quota_exhausted", window(rollup(tenants={"acme": usage})))
    assert finding.summary == "50 of 100 requests of acme were refused by its quota in a minute"


# -- SLOs ------------------------------------------------------------------------------------------------------------
def burning(requests: int = 100, **rates: float) -> Window:
    """A window in which one budget burns at some rates."""
    return window(burns=[SloBurn("coder", "ttft", requests, {"5m": 0.0, "1h": 0.0, "6h": 0.0} | rates)])


@pytest.mark.parametrize(
    ("seen", "severity"),
    [
        (burning(**{"1h": 20, "5m": 20}), Severity.CRITICAL),
        (burning(**{"6h": 7, "1h": 7}), Severity.WARNING),
        (burning(**{"1h": 20, "5m": 2}), None),  # it is over
        (burning(**{"5m": 50}), None),  # it does not matter yet
        (burning(10, **{"1h": 20, "5m": 20}), None),  # too few requests
    ],
)
def test_a_budget_that_burns(seen: Window, severity: Severity | None) -> None:
    assert [one.severity for one in found("slo_burn", seen)] == ([] if severity is None else [severity])
