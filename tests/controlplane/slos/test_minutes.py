"""SLOs over REST, and the minutes that Celery counts."""

import time
from collections.abc import Callable
from uuid import uuid4

import msgspec
import pytest
from rest_framework.test import APIClient

from controlplane.accounts.models import AuditEntry
from controlplane.slos import services
from controlplane.slos.models import SloMinute
from controlplane.telemetry.models import RollupRow
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup
from tests.controlplane.slos.test_attainment import rollup

pytestmark = pytest.mark.django_db(databases="__all__")
SLO = "/api/v1/slos/default/"


@pytest.fixture
def minute() -> int:
    """A whole minute that has passed for certain."""
    return int(time.time()) // 60 - 3


def write(minute: int, latencies_s: list[float], bucket: int = 0, workload: str = "default") -> None:
    made: WorkerRollup = rollup(latencies_s)
    made.bucket = minute * 60 + bucket * BUCKET_S
    made.workloads = {workload: made.workloads["chat"]}
    RollupRow.objects.create(bucket=made.bucket, worker=made.worker, writer=uuid4(), body=msgspec.json.encode(made))


def test_targets_are_set_shown_and_taken_away(admin: APIClient) -> None:
    assert admin.put(SLO, {"ttft_s": 2.0}).status_code == 201
    shown = admin.put(SLO, {"ttft_s": 1.0, "ttft_percentile": 99}).json()
    assert (shown["workload"], shown["ttft_s"], shown["ttft_percentile"], shown["tpot_s"]) == ("default", 1.0, 99, None)
    assert [w["window"] for w in shown["attainment"]] == ["5m", "1h", "6h", "3d", "30d"]
    assert shown["attainment"][0]["ttft"] == {"attainment": None, "burn_rate": None, "met": None}
    assert admin.delete(SLO).status_code == 204
    assert admin.get(SLO).status_code == 404
    assert list(AuditEntry.objects.filter(object_type="slo").order_by("id").values_list("action", flat=True)) == [
        "slo.create",
        "slo.change",
        "slo.delete",
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ttft_s"),
        ({"ttft_s": 0}, "ttft_s"),
        ({"ttft_s": 1e9}, "ttft_s"),
        ({"tpot_s": -1}, "tpot_s"),
        ({"ttft_s": 1, "ttft_percentile": 100}, "ttft_percentile"),
    ],
)
def test_targets_that_cannot_be_are_refused(admin: APIClient, body: dict[str, float], field: str) -> None:
    assert field in {fault["field"] for fault in admin.put(SLO, body).json()["errors"]}


def test_minutes_are_counted_once_and_add_up(admin: APIClient, minute: int) -> None:
    admin.put(SLO, {"ttft_s": 2.0, "ttft_percentile": 90})
    write(minute, [0.1] * 8, bucket=0)
    write(minute, [0.1] * 8, bucket=5)
    write(minute - 1, [30.0] * 4)
    write(minute, [30.0] * 50, bucket=1, workload="other")
    assert services.count_minutes() == 2
    assert services.count_minutes() == 0
    window = admin.get(SLO).json()["attainment"][0]
    assert window["requests"] == 20
    assert window["ttft"] == {"attainment": 0.8, "burn_rate": pytest.approx(2.0), "met": False}
    assert window["goodput_per_s"] == pytest.approx(16 / 300)


def test_the_present_minute_waits(admin: APIClient) -> None:
    admin.put(SLO, {"ttft_s": 2.0})
    write(int(time.time()) // 60, [0.1])
    assert services.count_minutes() == 0


def test_old_minutes_leave_short_windows(admin: APIClient, minute: int) -> None:
    admin.put(SLO, {"ttft_s": 2.0})
    write(minute - 30, [0.1] * 10)
    services.count_minutes()
    windows = {w["window"]: w["requests"] for w in admin.get(SLO).json()["attainment"]}
    assert (windows["5m"], windows["1h"], windows["30d"]) == (0, 10, 10)


def test_a_list_costs_the_same_however_long(admin: APIClient, django_assert_num_queries: Callable[..., object]) -> None:
    for name in ("a", "b", "c"):
        admin.post("/api/v1/workloads/", {"name": name, "policy": "default"})
        admin.put(f"/api/v1/slos/{name}/", {"ttft_s": 1})
    admin.get("/api/v1/slos/")
    with django_assert_num_queries(4):  # type: ignore[attr-defined]  (token, count, page, sums)
        assert admin.get("/api/v1/slos/").json()["count"] == 3


def test_deleting_the_workload_takes_its_slo(admin: APIClient, minute: int) -> None:
    admin.post("/api/v1/workloads/", {"name": "chat", "policy": "default"})
    admin.put("/api/v1/slos/chat/", {"ttft_s": 1})
    write(minute, [0.1], workload="chat")
    assert services.count_minutes() == 1
    admin.delete("/api/v1/workloads/chat/")
    assert not SloMinute.objects.exists()
