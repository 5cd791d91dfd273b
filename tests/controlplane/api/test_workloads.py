"""Workloads and policies over REST."""

import pytest
from rest_framework.test import APIClient

from controlplane.bridge.publisher import current
from router.config import parse_config
from router.core.workload_match import WorkloadMatch

WORKLOADS, POLICIES = "/api/v1/workloads/", "/api/v1/policies/"
pytestmark = pytest.mark.django_db


def test_rules_are_told_in_order_with_the_default_last(admin: APIClient) -> None:
    for name, position in [("late", 20), ("early", 10), ("also-early", 10)]:
        body = {"name": name, "policy": "default", "position": position, "match": {"models": [f"{name}*"]}}
        assert admin.post(WORKLOADS, body).status_code == 201
    told = parse_config(current()[1]).workloads
    assert [w.name for w in told] == ["also-early", "early", "late", "default"]
    assert told[1].match == WorkloadMatch(models=("early*",))


def test_a_shadow_is_told_and_ended(admin: APIClient) -> None:
    changed = admin.patch(f"{WORKLOADS}default/", {"shadow_policy": "round_robin"}).json()
    assert changed["shadow_policy"] == "round_robin"
    assert parse_config(current()[1]).workloads[0].shadow_policy == "round_robin"
    assert admin.delete(f"{POLICIES}round_robin/").status_code == 409
    assert admin.patch(f"{WORKLOADS}default/", {"shadow_policy": None}).json()["shadow_policy"] is None
    assert parse_config(current()[1]).workloads[0].shadow_policy is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"policy": "missing"}, "policy"),
        ({"shadow_policy": "missing"}, "shadow_policy"),
        ({"match": {"models": ["a*b"]}}, "match"),
        ({"match": {"paths": ["v1"]}}, "match"),
        ({"match": {"models": "x"}}, "match.models"),
        ({"position": -1}, "position"),
    ],
)
def test_what_cannot_be_is_refused_by_field(admin: APIClient, change: dict[str, object], field: str) -> None:
    admin.post(WORKLOADS, {"name": "chat", "policy": "default"})
    answer = admin.patch(f"{WORKLOADS}chat/", change)
    assert answer.status_code == 400
    assert field in {fault["field"] for fault in answer.json()["errors"]}


def test_the_name_of_preloads_is_taken(admin: APIClient) -> None:
    answer = admin.post(WORKLOADS, {"name": "preload", "policy": "default"})
    assert answer.status_code == 400
    assert [fault["field"] for fault in answer.json()["errors"]] == ["name"]


def test_the_default_workload_has_no_rule(admin: APIClient) -> None:
    assert admin.patch(f"{WORKLOADS}default/", {"match": {"models": ["x"]}}).status_code == 400
    assert admin.delete(f"{WORKLOADS}default/").json()["code"] == "in_use"


def test_publishing_shows_conflicts(admin: APIClient) -> None:
    url = f"{POLICIES}default/"
    tag = admin.get(url).headers["ETag"]
    assert tag == '"1"'
    assert admin.post(f"{url}publish/", {"message": "x", "content": {"a": 2}}).status_code == 428
    first = admin.post(f"{url}publish/", {"message": "Heavier.", "content": {"a": 2}}, headers={"If-Match": tag})
    assert (first.status_code, first.headers["ETag"]) == (200, '"2"')
    stale = admin.post(f"{url}publish/", {"message": "x", "content": {"a": 3}}, headers={"If-Match": tag})
    assert (stale.status_code, stale.json()["code"], stale.json()["live"]) == (412, "stale_revision", 2)
    bad = admin.post(f"{url}publish/", {"message": "x", "content": {"a": -3}}, headers={"If-Match": '"2"'})
    assert (bad.status_code, bad.json()["code"]) == (400, "invalid")
    odd = admin.post(f"{url}publish/", {"message": "x", "content": {}}, headers={"If-Match": "newest"})
    assert odd.json()["errors"][0]["field"] == "If-Match"


def test_draft_history_and_going_back(admin: APIClient) -> None:
    url = f"{POLICIES}default/"
    assert admin.put(f"{url}draft/", {"content": {"b": 2}}).json()["draft"] == {"b": 2}
    admin.post(f"{url}publish/", {"message": "Fewer at once."}, headers={"If-Match": '"1"'})
    back = admin.post(f"{url}rollback/", {"to": 1, "message": "Worse."}, headers={"If-Match": '"2"'})
    assert back.json()["live"]["number"] == 3
    history = admin.get(f"{url}revisions/").json()["results"]
    assert [(r["number"], r["message"], r["restores"]) for r in history] == [
        (3, "Worse.", 1),
        (2, "Fewer at once.", None),
        (1, "Made with the database.", None),
    ]
    assert admin.get(f"{url}revisions/2/").json()["content"]["b"] == 2.0
    assert admin.get(f"{url}revisions/9/").status_code == 404


def test_a_policy_is_made_and_deleted(admin: APIClient) -> None:
    assert admin.post(POLICIES, {"name": "chat", "content": {"a": 1.5}}).status_code == 201
    assert admin.post(POLICIES, {"name": "chat", "content": {}}).json()["code"] == "name_taken"
    assert admin.delete(f"{POLICIES}chat/").status_code == 204
    assert admin.get(f"{POLICIES}chat/").status_code == 404
