"""The settings page: what is in force, what may be changed there, and who may see it."""

import re

import pytest
from django.test import Client
from msgspec.structs import replace

from controlplane.accounts.access import Role
from controlplane.accounts.models import User
from controlplane.alerts.evaluating import limits_in_force
from controlplane.alerts.kinds import KINDS
from controlplane.env import Environment, Reading
from controlplane.ops.retention import rules
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.sharing.alone import Alone
from controlplane.telemetry.sharing.names import own_name
from tests.dashboards.page_forms import parse
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


def text_of(client: Client) -> str:
    answer = client.get("/settings/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_only_admins_see_it_and_its_place_in_the_rail(signed_in: Client, viewer: Client, fresh_hub: Hub) -> None:
    assert 'href="/settings/"' in text_of(signed_in)
    assert viewer.get("/settings/").status_code == 403
    assert 'href="/settings/"' not in viewer.get("/workloads/").content.decode()
    assert "Settings" not in [entry["label"] for entry in viewer.get("/palette/").json()["entries"]]
    assert viewer.post("/settings/alerts/score_tail/", {}).status_code == 403


def test_every_variable_is_shown_and_no_secret(
    signed_in: Client, fresh_hub: Hub, settings: pytest.FixtureRequest
) -> None:
    environment = Environment({"POINTSMAN_SECRET_KEY": "do-not-show-me", "X": "shown", "N": "7"})
    environment.secret("POINTSMAN_SECRET_KEY")
    environment.secret("REDIS_URL")
    environment.text("X")
    environment.integer("N", 1, minimum=0, maximum=9)
    environment.number("D", 1.5, minimum=0, maximum=9)
    settings.ENVIRONMENT = tuple(environment.readings.values())  # type: ignore[attr-defined]
    rows = re.findall(r"<tr><td><code>(\w+)</code></td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", text_of(signed_in))
    shown = {name: (re.sub("<[^>]+>", "", value), source) for name, value, source in rows}
    assert shown == {
        "POINTSMAN_SECRET_KEY": ("hidden", "the environment"),
        "REDIS_URL": ("none", "default"),
        "X": ("shown", "the environment"),
        "N": ("7", "the environment"),
        "D": ("1.5", "default"),
    }
    assert "do-not-show-me" not in text_of(signed_in)


def test_every_variable_that_is_read_is_noted_with_what_is_in_force() -> None:
    environment = Environment({"ON": "yes", "LIST": "a, b"})
    environment.boolean("ON", default=False)
    environment.items("LIST")
    environment.optional("NONE")
    assert environment.readings == {
        "ON": Reading("ON", "yes", is_set=True),
        "LIST": Reading("LIST", "a, b", is_set=True),
        "NONE": Reading("NONE", "", is_set=False),
    }


def test_workers_are_shown_with_the_configuration_that_each_runs(signed_in: Client, fresh_hub: Hub) -> None:
    assert "No worker is heard" in text_of(signed_in)
    fresh_hub.accept(replace(FakeWorker(2, name="router-a").step(), config_revision=41, config_error="b is -1"))
    text = signed_in.get("/settings/+workers/").content.decode()
    assert "router-a" in text
    assert ">41<" in text
    assert "refused the newest: b is -1" in text
    assert own_name() in text, "the web process that it reports to"


def test_a_second_process_of_one_name_is_told(signed_in: Client, fresh_hub: Hub) -> None:
    younger, older = FakeWorker(2, name="router-a"), FakeWorker(2, name="router-a")
    younger.restart(unix_s=50.0)
    fresh_hub.accept(younger.step())
    assert "another process of this name" not in text_of(signed_in)
    assert fresh_hub.is_namesake(older.step())
    assert "another process of this name" in text_of(signed_in)


def test_it_says_when_other_web_processes_are_not_heard(
    signed_in: Client, fresh_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_hub.accept(FakeWorker(2).step())
    assert "Other web processes are not heard" not in text_of(signed_in)
    monkeypatch.setattr(Alone, "whole", False)
    text = text_of(signed_in)
    assert "Other web processes are not heard" in text
    assert "Every live worker runs it" not in text


def test_what_is_kept_is_what_pruning_keeps(signed_in: Client, fresh_hub: Hub, settings: pytest.FixtureRequest) -> None:
    settings.AUDIT_RETENTION_DAYS = 1_234  # type: ignore[attr-defined]
    text = text_of(signed_in)
    assert "1,234 days" in text
    for rule in rules():
        assert rule.what in text


def test_limits_of_alerts_are_changed_there_and_in_force(signed_in: Client, fresh_hub: Hub) -> None:
    name = "stale_metrics"
    (limit, default), *others = [
        (field, getattr(KINDS[name].limits, field)) for field in KINDS[name].limits.__struct_fields__
    ]
    sent = {limit: str(default * 3), **{key: str(value) for key, value in others}}
    answer = signed_in.post(f"/settings/alerts/{name}/", {**sent, "enabled": "on"}, follow=True)
    assert "(changed)" in answer.content.decode()
    assert getattr(limits_in_force()[name], limit) == default * 3
    signed_in.post(f"/settings/alerts/{name}/", sent)
    assert name not in limits_in_force()
    assert "not looked for" in text_of(signed_in)


@pytest.mark.parametrize("value", ["many", "-1e999", ""])
def test_a_limit_that_cannot_be_is_refused(signed_in: Client, fresh_hub: Hub, value: str) -> None:
    name = "stale_metrics"
    fields = dict.fromkeys(KINDS[name].limits.__struct_fields__, value)
    answer = signed_in.post(f"/settings/alerts/{name}/", {**fields, "enabled": "on"}, follow=True)
    assert 'aria-invalid="true"' in answer.content.decode()
    assert limits_in_force()[name] == KINDS[name].limits
    assert signed_in.post("/settings/alerts/nothing/", {}).status_code == 404


def test_the_recording_is_shown_as_it_is(signed_in: Client, fresh_hub: Hub, settings: pytest.FixtureRequest) -> None:
    assert "POINTSMAN_RECORD=yes" in text_of(signed_in)
    settings.RECORD = True  # type: ignore[attr-defined]
    assert "no request was served" in text_of(signed_in)


def test_a_person_is_made_gets_another_role_and_is_closed(signed_in: Client, fresh_hub: Hub) -> None:
    made = signed_in.post("/settings/people/", {"username": "vera", "role": "viewer"})
    assert made.status_code == 201
    link = re.search(r"http://testserver(/login/once/[^<]+)", made.content.decode())
    assert link is not None
    theirs = Client()
    assert theirs.get(link[1]).status_code == 302
    assert theirs.get("/workloads/").status_code == 200
    signed_in.post("/settings/people/vera/", {"role": "operator"})
    assert User.objects.get(username="vera").role == Role.OPERATOR
    signed_in.post("/settings/people/vera/", {"account": "closed"})
    assert theirs.get("/workloads/").status_code == 302, "closed accounts are signed out"
    assert signed_in.post("/settings/people/vera/link/").status_code == 302


def test_the_last_administrator_stays_one(signed_in: Client, viewer: Client, fresh_hub: Hub) -> None:
    admin = User.objects.get(role=Role.ADMIN)
    for change in ({"role": "viewer"}, {"account": "closed"}):
        answer = signed_in.post(f"/settings/people/{admin.username}/", change, follow=True)
        assert "is the last administrator" in answer.content.decode()
    admin.refresh_from_db()
    assert (admin.role, admin.is_active) == (Role.ADMIN, True)
    assert viewer.post(f"/settings/people/{admin.username}/", {"role": "viewer"}).status_code == 403


def test_what_is_shown_once_is_within_sight(signed_in: Client, fresh_hub: Hub) -> None:
    forms = [one.attributes["action"] for one in parse(signed_in.get("/settings/").content.decode()).forms()]
    shown_once = [one for one in forms if re.fullmatch(r"/settings/people/(\w+/link/)?(#.*)?", one)]
    assert len(shown_once) == 2
    assert all(one.endswith("#people-title") for one in shown_once)
    made = parse(signed_in.post("/settings/people/", {"username": "vera", "role": "viewer"}).content.decode())
    assert made.by_id("people-title") is not None
    assert made.by_id("snippet-link") is not None
