"""Alerts, silences and channels over REST."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.accounts.access import Scope
from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.models import Alert, Channel, Delivery
from controlplane.alerts.services.outbox import Attempt, claim, failed
from controlplane.alerts.services.raising import raise_alert

Caller = Callable[..., APIClient]
ALERTS, SILENCES, CHANNELS, KINDS = (f"/api/v1/{name}/" for name in ("alerts", "silences", "channels", "alert-kinds"))
KEY = "a key of more than sixteen characters"
HOOK = {"name": "hook", "kind": "webhook", "settings": {"url": "http://10.0.0.9/secret-path", "signing_key": KEY}}


def fire(instance: str = "gpu-1", severity: Severity = Severity.WARNING) -> Alert:
    """Raise an alert."""
    return raise_alert(
        finding=Finding(
            kind="stale_metrics", severity=severity, labels={"instance": instance}, summary=f"{instance} is stale"
        )
    )


@pytest.fixture
def operator(caller: Caller) -> APIClient:
    """A caller who may handle alerts."""
    return caller(Scope.READ, Scope.ALERTS)


def test_the_list_is_filtered_and_ordered(operator: APIClient) -> None:
    fire("gpu-1")
    second = fire("gpu-2", Severity.CRITICAL)
    operator.post(f"{ALERTS}{second.pk}/acknowledge/")

    def names(query: str) -> list[str]:
        return [row["labels"]["instance"] for row in operator.get(f"{ALERTS}?{query}").json()["results"]]

    assert names("") == ["gpu-2", "gpu-1"]
    assert names("ordering=started_at") == ["gpu-1", "gpu-2"]
    assert names("state=firing") == ["gpu-1"]
    assert names("state=open&state=resolved") == ["gpu-2", "gpu-1"]
    assert names("severity=critical") == ["gpu-2"]
    assert names("label=instance%3Dgpu-1") == ["gpu-1"]
    assert names("search=gpu-2") == ["gpu-2"]
    assert names("assignee=") == ["gpu-2", "gpu-1"]
    assert names("assignee=olga") == []


@pytest.mark.parametrize("query", ["state=x", "kind=x", "severity=x", "label=x", "ordering=x"])
def test_a_filter_that_cannot_be_is_refused(operator: APIClient, query: str) -> None:
    answer = operator.get(f"{ALERTS}?{query}")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == query.partition("=")[0]


def test_one_alert_is_explained(operator: APIClient) -> None:
    alert = fire()
    body = operator.get(f"{ALERTS}{alert.pk}/").json()
    assert body["title"] == "Stale engine metrics"
    assert body["what_to_do"]
    assert [entry["what"] for entry in body["timeline"]] == ["fired"]
    assert operator.get(f"{ALERTS}{uuid4()}/").status_code == 404


def test_an_alert_goes_through_its_life(operator: APIClient, operator_user: object) -> None:
    one = f"{ALERTS}{fire().pk}/"
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    assert operator.post(f"{one}assign/", {"assignee": "olga"}).json()["assignee"] == "olga"
    assert operator.post(f"{one}comment/", {"text": "looking"}).status_code == 200
    acknowledged = operator.post(f"{one}acknowledge/", {"until": until, "comment": "on it"}).json()
    assert (acknowledged["state"], acknowledged["acknowledged_by"]) == ("acknowledged", "token test")
    assert operator.post(f"{one}resolve/").json()["state"] == "resolved"
    refused = operator.post(f"{one}acknowledge/")
    assert (refused.status_code, refused.json()["code"]) == (409, "illegal_transition")
    whats = [entry["what"] for entry in operator.get(one).json()["timeline"]]
    assert whats == ["fired", "assigned", "commented", "acknowledged", "resolved"]


def test_who_may_only_read_changes_nothing(caller: Caller) -> None:
    reader, alert = caller(Scope.READ), fire()
    assert reader.get(ALERTS).status_code == 200
    for path in (f"{ALERTS}{alert.pk}/acknowledge/", f"{ALERTS}bulk/", SILENCES, CHANNELS):
        assert reader.post(path, {}).status_code == 403, path
    assert reader.put(f"{KINDS}stale_metrics/", {}).status_code == 403
    assert APIClient().get(ALERTS).status_code == 401


def test_many_at_once(operator: APIClient) -> None:
    rows = [str(fire(f"gpu-{n}").pk) for n in range(3)]
    answer = operator.post(f"{ALERTS}bulk/", {"alerts": [*rows, str(uuid4())], "action": "resolve"})
    assert answer.status_code == 200
    assert answer.json()["done"] == 3
    assert list(answer.json()["refused"].values()) == ["There is no such alert."]
    assert Alert.objects.filter(state="resolved").count() == 3


def test_a_silence_is_tried_made_seen_and_ended(operator: APIClient) -> None:
    alert = fire()
    fire("gpu-2")
    matchers = [{"label": "instance", "operator": "=", "value": "gpu-1"}]
    preview = operator.post(f"{SILENCES}preview/", {"matchers": matchers}).json()
    assert (preview["count"], preview["alerts"][0]["id"]) == (1, str(alert.pk))
    end = (timezone.now() + timedelta(hours=1)).isoformat()
    made = operator.post(SILENCES, {"matchers": matchers, "ends_at": end, "comment": "fans"})
    assert made.status_code == 201
    assert operator.get(f"{ALERTS}{alert.pk}/").json()["silenced_until"] is not None
    assert operator.get(f"{SILENCES}?active=true").json()["count"] == 1
    assert operator.delete(f"{SILENCES}{made.json()['id']}/").status_code == 200
    assert operator.get(f"{SILENCES}?active=true").json()["count"] == 0
    assert operator.get(f"{ALERTS}{alert.pk}/").json()["silenced_until"] is None


def test_a_silence_without_an_end_is_refused(operator: APIClient) -> None:
    matchers = [{"label": "instance", "operator": "=", "value": "gpu-1"}]
    answer = operator.post(SILENCES, {"matchers": matchers, "comment": "for ever"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "ends_at"


def test_secrets_of_a_channel_never_come_out(operator: APIClient, admin: APIClient) -> None:
    made = operator.post(CHANNELS, HOOK)
    assert made.status_code == 201
    one = f"{CHANNELS}{made.json()['id']}/"
    assert made.json()["target"] == "http://10.0.0.9/…"
    assert made.json()["settings"] == {}
    for text in (made.content, operator.get(one).content, admin.get("/api/v1/audit/").content):
        assert KEY.encode() not in text
        assert b"secret-path" not in text
    assert KEY.encode() not in bytes(Channel.objects.get().sealed_settings)


def test_a_channel_can_be_changed_without_giving_its_secrets_again(operator: APIClient) -> None:
    one = f"{CHANNELS}{operator.post(CHANNELS, HOOK).json()['id']}/"
    changed = operator.put(one, {"name": "hook 2", "kind": "webhook", "settings": {}})
    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["target"]) == ("hook 2", "http://10.0.0.9/…")
    assert operator.put(one, {"name": "x", "kind": "slack", "settings": {}}).status_code == 400


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "http://169.254.169.254/latest"}, "settings.url"),
        ({"url": "ftp://10.0.0.1/"}, "settings.url"),
        ({"url": "http://10.0.0.1/", "signing_key": "short"}, "settings.signing_key"),
        ({"url": "http://10.0.0.1/", "verify": False}, "settings"),
        ({}, "settings"),
    ],
)
def test_settings_that_cannot_be_are_refused(operator: APIClient, given: object, field: str) -> None:
    answer = operator.post(CHANNELS, {"name": "x", "kind": "webhook", "settings": given})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field


def test_the_test_button_and_the_delivery_log(operator: APIClient) -> None:
    one = f"{CHANNELS}{operator.post(CHANNELS, HOOK).json()['id']}/"
    sent = operator.post(f"{one}test/")
    assert (sent.status_code, sent.json()["state"], sent.json()["occasion"]) == (202, "pending", "test")
    (row,) = claim(1)
    failed(row, Attempt(1.5, 503, "The receiver answers 503."))
    (logged,) = operator.get(f"{one}deliveries/").json()["results"]
    assert logged["last_error"] == "The receiver answers 503."
    assert [(a["ok"], a["status"], a["took_s"]) for a in logged["log"]] == [(False, 503, 1.5)]
    assert "body" not in logged


def test_a_channel_is_disabled_enabled_and_removed(operator: APIClient) -> None:
    one = f"{CHANNELS}{operator.post(CHANNELS, HOOK).json()['id']}/"
    assert operator.post(f"{one}disable/", {"reason": "noisy"}).json()["disabled_reason"] == "noisy"
    assert operator.post(f"{one}test/").status_code == 409
    assert operator.post(f"{one}enable/").json()["enabled"] is True
    assert operator.post(CHANNELS, HOOK).json()["code"] == "name_taken"
    assert operator.delete(one).status_code == 204
    assert not Delivery.objects.exists()


def test_limits_of_a_kind_can_be_set(operator: APIClient) -> None:
    one = f"{KINDS}score_tail/"
    assert operator.get(one).json()["limits"]["factor"] == 4.0
    changed = operator.put(one, {"limits": {"factor": 2.5}}).json()
    assert (changed["limits"]["factor"], changed["limits"]["share"]) == (2.5, 0.1)
    assert operator.put(one, {"limits": {"factor": 0.5}}).status_code == 400
    assert operator.put(one, {"limits": {"nonsense": 1}}).status_code == 400
    assert operator.put(one, {"enabled": False}).json()["enabled"] is False
    assert operator.get(f"{KINDS}nonsense/").status_code == 404
    assert len(operator.get(KINDS).json()) >= 10


def test_a_page_of_alerts_costs_the_same_however_many_there_are(
    operator: APIClient, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for number in range(30):
        fire(f"gpu-{number}")
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        assert operator.get(ALERTS).json()["count"] == 30
