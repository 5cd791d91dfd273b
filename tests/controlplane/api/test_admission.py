"""Admission over REST, and the limit of a workload."""

import pytest
from rest_framework.test import APIClient

from controlplane.bridge.publisher import current
from router.config import AdmissionConfig, parse_config

ADMISSION, WORKLOADS = "/api/v1/router/admission/", "/api/v1/workloads/"
pytestmark = pytest.mark.django_db


def test_it_is_read_set_and_guarded_by_its_tag(admin: APIClient) -> None:
    first = admin.get(ADMISSION)
    assert first.headers["ETag"] == '"0"'
    assert first.json() == {
        "revision": 0,
        "instance_requests": None,
        "queue_requests": 1000,
        "queue_wait_s": 30.0,
        "batch_window_ms": 0.0,
        "updated_at": None,
        "updated_by": "",
    }
    assert admin.put(ADMISSION, {"queue_requests": 5}).status_code == 428
    changed = admin.put(ADMISSION, {"queue_requests": 5, "queue_wait_s": 1.5}, headers={"If-Match": '"0"'})
    assert (changed.status_code, changed.headers["ETag"]) == (200, '"1"')
    assert parse_config(current()[1]).admission == AdmissionConfig(queue_requests=5, queue_wait_s=1.5)
    stale = admin.put(ADMISSION, {}, headers={"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"], stale.json()["live"]) == (412, "stale_revision", 1)
    back = admin.put(ADMISSION, {}, headers={"If-Match": '"1"'}).json()
    assert (back["queue_requests"], back["updated_by"]) == (1000, "token test")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"instance_requests": 0}, "instance_requests"),
        ({"queue_requests": 2**31}, "queue_requests"),
        ({"queue_wait_s": 0}, "queue_wait_s"),
        ({"queue_wait_s": 3601}, "queue_wait_s"),
        ({"batch_window_ms": 10.5}, "batch_window_ms"),
    ],
)
def test_what_cannot_be_is_refused_by_field(admin: APIClient, body: dict[str, object], field: str) -> None:
    answer = admin.put(ADMISSION, body, headers={"If-Match": '"0"'})
    assert answer.status_code == 400
    assert [fault["field"] for fault in answer.json()["errors"]] == [field]


def test_a_workload_has_a_limit_until_it_is_taken_away(admin: APIClient) -> None:
    made = admin.post(WORKLOADS, {"name": "batch", "policy": "default", "concurrent": 16})
    assert (made.status_code, made.json()["concurrent"]) == (201, 16)
    told = {w.name: w.concurrent for w in parse_config(current()[1]).workloads}
    assert told == {"batch": 16, "default": None}
    assert admin.patch(f"{WORKLOADS}batch/", {"description": "Nightly."}).json()["concurrent"] == 16
    assert admin.patch(f"{WORKLOADS}batch/", {"concurrent": 0}).status_code == 400
    assert admin.patch(f"{WORKLOADS}batch/", {"concurrent": None}).json()["concurrent"] is None
    changes = admin.get("/api/v1/audit/", {"object_name": "batch", "action": "workload.change"}).json()["results"]
    assert (changes[0]["before"]["concurrent"], changes[0]["after"]["concurrent"]) == (16, None)
