"""What the live page asks of the past: history, what happened, and the alert's line."""

import time

import pytest
from django.test import Client

from controlplane.accounts.actor import SYSTEM
from controlplane.admission.services import set_admission
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.policies.services import revisions
from controlplane.telemetry import rollups
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.rollup import WorkerRollup, bucket_of_time
from router.config import AdmissionConfig
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])


def a_minute_ago() -> WorkerRollup:
    made, worker = WorkerRollup(worker="router-0", bucket=bucket_of_time(time.time() - 60)), FakeWorker(4, 40.0)
    for _ in range(40):
        made.add(worker.step())
    rollups.write([made])
    return made


def test_strangers_are_sent_to_sign_in() -> None:
    assert Client().get("/live/past/?minutes=15")["Location"].startswith("/login/?next=")


def test_the_past_is_read_from_roll_ups_with_what_happened(signed_in: Client, fresh_hub: Hub) -> None:
    made = a_minute_ago()
    revisions.publish(actor=SYSTEM, name="default", message="why", expected=1, content={"b": 0.5})
    past = signed_in.get("/live/past/", {"minutes": "15"}).json()
    counted = sum(column["requests"] for column in past["history"]["columns"])
    assert counted == sum(instance.requests for instance in made.instances.values())
    (event,) = past["events"]
    assert (event["kind"], event["text"]) == ("policy", "policy default published")
    assert signed_in.get(event["href"]).status_code == 200


def test_a_workload_two_instances_and_a_moment_can_be_asked_for(signed_in: Client, fresh_hub: Hub) -> None:
    made = a_minute_ago()
    asked = {"minutes": "60", "workload": "coder", "apart": ["gpu-00", "gpu-03", "gpu-01"], "then": str(made.bucket)}
    past = signed_in.get("/live/past/", asked).json()
    assert [course["instance"] for course in past["history"]["courses"]] == ["gpu-00", "gpu-03"]
    compared = [(minute["instance"], minute["is_then"]) for minute in past["history"]["minutes"]]
    assert compared == [("gpu-00", True), ("gpu-00", False), ("gpu-03", True), ("gpu-03", False)]
    assert sum(c["requests"] for c in past["history"]["columns"]) == made.workloads["coder"].requests


def test_the_line_of_the_alert_comes_along(signed_in: Client, fresh_hub: Hub) -> None:
    a_minute_ago()
    line = signed_in.get("/live/past/", {"minutes": "1"}).json()["line"]
    assert line["workload"] == "coder"
    assert line["score"] > line["usual_p95"]
    set_kind(actor=SYSTEM, name="score_tail", enabled=False, limits={})
    assert not signed_in.get("/live/past/", {"minutes": "1"}).json()["line"]["enabled"]


def test_whether_instances_can_be_full_comes_along(signed_in: Client, fresh_hub: Hub) -> None:
    assert not signed_in.get("/live/past/", {"minutes": "1"}).json()["instances_fill"]
    set_admission(actor=SYSTEM, rule=AdmissionConfig(instance_requests=2), expected=0)
    assert signed_in.get("/live/past/", {"minutes": "1"}).json()["instances_fill"]


@pytest.mark.parametrize("minutes", ["", "0", "7", "99999", "abc"])
def test_only_spans_that_are_kept_can_be_asked_for(signed_in: Client, fresh_hub: Hub, minutes: str) -> None:
    assert signed_in.get("/live/past/", {"minutes": minutes}).status_code == 400


@pytest.mark.parametrize("then", ["x", "-5", "1e9", "9" * 40, "１２"])
def test_a_moment_is_whole_unix_seconds(signed_in: Client, fresh_hub: Hub, then: str) -> None:
    assert signed_in.get("/live/past/", {"minutes": "15", "then": then}).status_code == 400


def test_a_time_from_one_moment_to_another_can_be_asked_for(signed_in: Client, fresh_hub: Hub) -> None:
    made = a_minute_ago()
    revisions.publish(actor=SYSTEM, name="default", message="why", expected=1, content={"b": 0.5})
    asked = {"from": str(made.bucket - 60), "to": str(made.bucket + 20)}
    past = signed_in.get("/live/past/", asked).json()
    assert sum(column["requests"] for column in past["history"]["columns"]) > 0
    assert past["events"] == []
    earlier = {"from": str(made.bucket - 600), "to": str(made.bucket - 60)}
    past = signed_in.get("/live/past/", earlier).json()
    assert sum(column["requests"] for column in past["history"]["columns"]) == 0
    assert past["history"]["kept_from_s"] == made.bucket


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [
        ("2000", "1000", "before"),
        ("1000", "1000", "before"),
        ("1000", "", "together"),
        ("", "1000", "together"),
        ("now", "1000", "whole Unix seconds"),
        ("0", "604801", "7 days"),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_with_a_reason(
    signed_in: Client, fresh_hub: Hub, begin: str, end: str, why: str
) -> None:
    answer = signed_in.get("/live/past/", {"from": begin, "to": end})
    assert answer.status_code == 400
    assert why in answer.json()["error"]
