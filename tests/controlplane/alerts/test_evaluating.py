"""From what routers reported to alerts, watched classes and their release, through the rows."""

import time
from collections.abc import Callable

import pytest

from controlplane.alerts import evaluating
from controlplane.alerts.evaluating import evaluate_newest, findings, limits_in_force, read_window
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Channel, Delivery, KindSettings, WatchedClass
from controlplane.alerts.selectors import watched_classes
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.alerts.services.watching import watch_hotspots
from controlplane.alerts.window import newest_end
from controlplane.bridge.publisher import current
from controlplane.fleet.models import Instance
from controlplane.policies.models import Workload
from controlplane.slos.models import Slo, SloMinute
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import ClassRollup, WorkerRollup
from router.config import parse_config
from router.core.instance import InstanceState
from tests.controlplane.alerts.conftest import OLGA
from tests.controlplane.alerts.rollups_of import instance

pytestmark = pytest.mark.django_db(databases=["default", "telemetry"])
CLASS = "3f2a" * 4


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the time."""

    def set_to(moment: float) -> None:
        monkeypatch.setattr(evaluating.time, "time", lambda: moment)

    return set_to


def report(bucket: int, *rows: Instance, hot: int = 0) -> None:
    """Have a router report on instances, and perhaps on a class that the first of them holds."""
    rollup = WorkerRollup(worker="router-0", bucket=bucket, snapshots=40, config_revision=10**6, hot_arrivals=100)
    for row in rows:
        seen = instance(row.name)
        seen.id = str(row.pk)
        rollup.instances[seen.id] = seen
    if hot:
        rollup.classes[CLASS] = ClassRollup(
            id=CLASS,
            model="m",
            prefix_tokens=512,
            requests=hot,
            holders=(str(rows[0].pk),),
            watched=False,
            mitigated=False,
        )
    rollups.write([rollup])


def test_a_hot_class_is_an_alert_and_on_watch_until_it_is_calm(
    register: Callable[..., Instance], now: Callable[[float], None], channel: Callable[..., Channel]
) -> None:
    channel()
    rows = [register(f"gpu-{number}", f"http://10.0.0.{number}:8000") for number in range(4)]
    Instance.objects.update(state=InstanceState.READY, has_metrics=True)
    start = newest_end(time.time())
    report(start, *rows, hot=60)
    now(start + 10.5)
    evaluate_newest()
    alert = Alert.objects.get()
    assert (alert.kind, alert.labels) == ("hotspot_class", {"prefix_class": CLASS})
    assert watched_classes() == [CLASS]
    assert parse_config(current()[1]).watched_classes == (CLASS,)
    assert [row.occasion for row in Delivery.objects.all()] == ["firing"]
    for step in range(1, 8):
        report(start + 10 * step, *rows)
        now(start + 10 * step + 10.5)
        evaluate_newest()
    alert.refresh_from_db()
    assert alert.life is AlertState.RESOLVED
    assert watched_classes() == []
    assert parse_config(current()[1]).watched_classes == ()
    assert [row.occasion for row in Delivery.objects.order_by("sequence")] == ["firing", "resolved"]


def test_a_watch_follows_the_routers_rule() -> None:
    from tests.controlplane.alerts.conftest import finding

    hot = [finding(kind="hotspot_class", labels={"prefix_class": CLASS})]
    assert watch_hotspots(end=100, findings=hot)
    assert not watch_hotspots(end=110, findings=hot)
    for end in range(120, 180, 10):
        assert not watch_hotspots(end=end, findings=[])
    assert not watch_hotspots(end=170, findings=hot)  # hot again: the calm starts over
    for end in range(180, 240, 10):
        assert not watch_hotspots(end=end, findings=[])
    assert watch_hotspots(end=240, findings=[])
    assert not WatchedClass.objects.exists()


def test_an_unreachable_instance_is_an_alert_without_any_router(
    register: Callable[..., Instance], now: Callable[[float], None]
) -> None:
    register("gpu-1")
    Instance.objects.update(state=InstanceState.UNREACHABLE, state_reason="no answer")
    now(time.time())
    evaluate_newest()
    assert Alert.objects.get().summary == "gpu-1 is unreachable: no answer"


def test_an_evaluator_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, register: Callable[..., Instance]
) -> None:
    register("gpu-1")
    Instance.objects.update(state=InstanceState.UNREACHABLE)
    broken = KINDS["hotspot_class"].__class__(
        **{name: getattr(KINDS["hotspot_class"], name) for name in KINDS["hotspot_class"].__struct_fields__}
        | {"evaluate": lambda window, limits: 1 / 0}
    )
    monkeypatch.setitem(KINDS, "hotspot_class", broken)  # type: ignore[arg-type]
    found = list(findings(read_window(newest_end(time.time())), limits_in_force()))
    assert [one.kind for one in found] == ["instance_unreachable"]


def test_limits_that_were_set_are_in_force_and_kinds_can_be_switched_off() -> None:
    set_kind(actor=OLGA, name="score_tail", enabled=True, limits={"factor": 2})
    set_kind(actor=OLGA, name="starvation", enabled=False, limits={})
    in_force = limits_in_force()
    assert in_force["score_tail"].factor == 2  # type: ignore[attr-defined]
    assert "starvation" not in in_force


def test_limits_of_an_older_version_are_ignored_rather_than_everything() -> None:
    KindSettings.objects.create(kind="score_tail", limits={"no_longer": 1})
    assert limits_in_force()["score_tail"] == KINDS["score_tail"].limits


def test_an_slo_that_burns_fast_is_critical() -> None:
    slo = Slo.objects.create(workload=Workload.objects.get(name="default"), ttft_s=1.0, ttft_percentile=99.0)
    minute = int(time.time() // 60) - 1
    counts = {"errors": 0, "tpot_counted": 0, "tpot_good": 0.0}
    SloMinute.objects.create(slo=slo, minute=minute, requests=100, ttft_counted=100, ttft_good=70.0, **counts)
    window = read_window(newest_end(time.time()))
    (burn,) = window.burns
    assert (burn.workload, burn.target, burn.requests) == ("default", "ttft", 100)
    assert burn.rates["5m"] == pytest.approx(30)
    (found,) = findings(window, {"slo_burn": KINDS["slo_burn"].limits})
    assert found.severity.value == "critical"
