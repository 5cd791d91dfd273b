"""The Workloads page: limits, model names and the door of the fleet."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from msgspec.structs import replace

from controlplane.accounts.actor import SYSTEM, Actor
from controlplane.admission.selectors import admission
from controlplane.admission.services import set_admission
from controlplane.aliases import selectors
from controlplane.aliases.models import ModelAlias
from controlplane.aliases.services import put_alias
from controlplane.aliases.target import Target
from controlplane.fleet.models import Instance
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.policies.selectors import workload_named
from controlplane.policies.services import revisions
from controlplane.policies.services.workloads import change_workload, create_workload
from controlplane.telemetry.hub import Hub
from router.config import AdmissionConfig
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True)
PAGE, NAME, ADMISSION = "/workloads/", "/workloads/+name/", "/workloads/+admission/"
CANARY = [Target("old", 3.0), Target("new", 1.0)]
RULE = {"instance_requests": "", "queue_requests": "1000", "queue_wait_s": "30", "batch_window_ms": "0"}


def text_of(client: Client, path: str = PAGE, **query: str) -> str:
    return client.get(path, query).content.decode()


def posted(client: Client, path: str, fields: Mapping[str, Any]) -> str:
    return client.post(path, fields, headers={"HX-Request": "true"}).content.decode()


def serve(*models: str) -> None:
    """Have an instance in rotation serve models."""
    made = registration.register(actor=SYSTEM, spec=InstanceSpec(name="gpu", url="http://10.0.0.1:8000", models=models))
    Instance.objects.filter(pk=made.pk).update(state="ready")


def hear(hub: Hub, queued: int, inside: int | None, refused: dict[str, int]) -> None:
    """Have a worker say who is at its door, for the default workload."""
    made = FakeWorker(4, 40.0).step()
    told = replace(made.workloads[0], name="default", queued=queued, inside=inside, refused=refused)
    hub.accept(replace(made, workloads=(told,)))
    hub.frame()  # pages would read the one that is held, for a quarter of a second


def test_without_names_the_page_says_what_they_are_for(signed_in: Client, fresh_hub: Hub) -> None:
    assert "lets you change the model behind it without touching a client" in text_of(signed_in)


def test_a_name_is_made_changed_and_deleted(signed_in: Client, fresh_hub: Hub) -> None:
    serve("old")
    assert '<option value="old">' in text_of(signed_in, NAME)
    fields = {"name": "team/chat", "model": ["old", " new ", ""], "weight": ["3", "1", "1"], "description": "Mostly."}
    answer = signed_in.post(NAME, fields)
    assert answer.headers["HX-Redirect"] == PAGE
    assert selectors.alias_named("team/chat").split == tuple(CANARY)
    page = text_of(signed_in)
    assert "team/chat is kept" in page
    for told in ("75.0 %", "25.0 %", "1 instance<", "nobody yet", 'width="75.00"', "Mostly."):
        assert told in page, told
    form = text_of(signed_in, NAME, name="team/chat")
    assert 'value="Mostly."' in form
    assert 'value="3"' in form
    posted(signed_in, NAME, {"name": "team/chat", "exists": "yes", "model": ["new"], "weight": ["1"]})
    assert selectors.alias_named("team/chat").split == (Target("new"),)
    posted(signed_in, f"{NAME}delete/", {"name": "team/chat"})
    assert not ModelAlias.objects.exists()


def test_what_is_wrong_with_a_name_is_said_where_it_is_wrong_and_nothing_typed_is_lost(
    signed_in: Client, fresh_hub: Hub
) -> None:
    serve("served")
    put_alias(actor=SYSTEM, name="taken", targets=CANARY)

    def refused(name: str, models: list[str], weights: list[str]) -> str:
        return posted(signed_in, NAME, {"name": name, "model": models, "weight": weights, "description": "kept words"})

    form = refused("two words", ["m"], ["1"])
    assert 'id="alias-name-fault"' in form
    assert 'value="two words"' in form
    assert 'value="kept words"' in form
    assert "There is already a name taken" in refused("taken", ["m"], ["1"])
    assert "1 instance serves a model named served" in refused("served", ["m"], ["1"])
    assert "The weight must be a number." in refused("chat", ["m", "n"], ["1", "some"])
    assert "It must be above 0" in refused("chat", ["m", "n"], ["1", "0"])
    assert "taken is an alias itself" in refused("chat", ["m", "taken"], ["1", "1"])
    assert "There must be 1 to 64 models, not 0." in refused("chat", ["", ""], ["1", "1"])
    assert [alias.name for alias in selectors.aliases()] == ["taken"]


def test_a_name_that_hides_a_model_is_marked(signed_in: Client, fresh_hub: Hub) -> None:
    put_alias(actor=SYSTEM, name="served", targets=CANARY)
    assert "Hides a model" not in text_of(signed_in)
    serve("served")
    assert "Hides a model" in text_of(signed_in)


def test_a_workload_gets_a_limit_that_the_table_shows_for_all_workers(signed_in: Client, fresh_hub: Hub) -> None:
    fields = {"policy": "default", "concurrent": "8"}
    signed_in.post("/workloads/default/", fields)
    assert workload_named("default").concurrent == 8
    assert "8 a worker" in text_of(signed_in), "no worker is heard"
    hear(fresh_hub, 3, 7, {})
    assert "7 of 8" in text_of(signed_in, "/workloads/+rows/")
    assert "<strong>3</strong>" in text_of(signed_in, "/workloads/+rows/")
    for wrong in ("0", "many"):
        answer = signed_in.post("/workloads/default/", {"policy": "default", "concurrent": wrong}, follow=True)
        assert 'aria-invalid="true"' in answer.content.decode()
    signed_in.post("/workloads/default/", {"policy": "default", "concurrent": ""})
    assert workload_named("default").concurrent is None


def test_the_door_shows_who_waits_who_was_refused_and_what_is_full(signed_in: Client, fresh_hub: Hub) -> None:
    assert "No router worker is heard." in text_of(signed_in, "/workloads/+door/")
    hear(fresh_hub, 5, None, {"queue_full": 11, "queue_timeout": 2})
    door = text_of(signed_in, "/workloads/+door/")
    for told in ('id="door-waiting">5<', 'id="door-refused-full">11<', 'id="door-refused-late">2<', "no limit"):
        assert told in door, told
    set_admission(actor=SYSTEM, rule=AdmissionConfig(instance_requests=1), expected=0)
    busy = sum(instance.bs >= 1 for instance in fresh_hub.frame().instances)
    assert f">{busy} of 4</dd>" in text_of(signed_in, "/workloads/+door/")


def test_admission_is_kept_with_the_words_of_the_settings(signed_in: Client, fresh_hub: Hub) -> None:
    page = text_of(signed_in)
    assert "Most requests that wait in a worker; more are refused." in page
    assert "as shipped" in page
    kept = posted(signed_in, ADMISSION, {**RULE, "revision": "0", "instance_requests": "8", "queue_wait_s": "2.5"})
    assert "Kept; workers take it over" in kept
    assert "revision 1" in kept
    assert admission().rule == AdmissionConfig(instance_requests=8, queue_wait_s=2.5)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"queue_requests": "0"}, "0 is below 1."),
        ({"queue_requests": ""}, "This field is required."),
        ({"queue_wait_s": "nan"}, "Enter a number."),
        ({"queue_wait_s": "9999"}, "9999 is above 3600 s."),
        ({"batch_window_ms": "20"}, "not within 0 to 10."),
    ],
)
def test_admission_that_cannot_be_is_refused_at_its_field(
    signed_in: Client, fresh_hub: Hub, change: dict[str, str], fault: str
) -> None:
    assert fault in posted(signed_in, ADMISSION, {**RULE, "revision": "0", **change})
    assert admission().revision == 0


def test_somebody_elses_change_is_shown_before_it_is_written_over(signed_in: Client, fresh_hub: Hub) -> None:
    set_admission(actor=Actor("bob"), rule=AdmissionConfig(queue_requests=50), expected=0)
    mine = {**RULE, "queue_requests": "7"}
    shown = posted(signed_in, ADMISSION, {**mine, "revision": "0"})
    assert "Somebody else was faster." in shown
    assert "bob" in shown
    assert "Now in force: 50" in shown
    assert shown.count("Now in force") == 1, "only what differs"
    assert 'value="7"' in shown
    assert admission().rule.queue_requests == 50
    assert 'name="revision" value="1"' in shown
    posted(signed_in, ADMISSION, {**mine, "revision": "1"})
    assert admission().rule.queue_requests == 7
    assert "Send If-Match" in posted(signed_in, ADMISSION, {**mine, "revision": "x"})


def test_viewers_see_but_cannot_change(viewer: Client, fresh_hub: Hub) -> None:
    put_alias(actor=SYSTEM, name="chat", targets=CANARY)
    change_workload(actor=SYSTEM, name="default", concurrent=4)
    page = text_of(viewer)
    assert "75.0 %" in page
    assert "Your role may not change model names" in page
    assert "Your role may look, but not change this." in page
    assert "?name=chat" not in page
    assert viewer.get("/workloads/+door/").status_code == 200
    for path in (NAME, f"{NAME}delete/", ADMISSION):
        assert viewer.post(path).status_code == 403
    assert viewer.get(NAME).status_code == 403


@pytest.mark.parametrize("path", [PAGE, "/workloads/+door/", NAME])
def test_strangers_are_sent_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_the_page_does_not_grow_with_the_policies_of_each_workload(signed_in: Client, fresh_hub: Hub) -> None:
    def size() -> int:
        return len(signed_in.get("/workloads/").content)

    for number in range(3):
        create_workload(actor=SYSTEM, name=f"w-{number}", policy="default", match={"models": [f"m{number}"]})
    before = size()
    for number in range(20):
        revisions.create_policy(actor=SYSTEM, name=f"more-{number:02}", content={})
    assert size() - before < 20 * 2 * 60, "each policy is an option twice, in the form of a new workload"


def test_the_form_of_a_workload_has_an_address(signed_in: Client, viewer: Client, fresh_hub: Hub) -> None:
    alone = signed_in.get("/workloads/default/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in alone
    assert 'name="concurrent"' in alone
    whole = signed_in.get("/workloads/default/").content.decode()
    assert 'id="edit-title"' in whole
    assert signed_in.get("/workloads/none/").status_code == 404
    assert viewer.get("/workloads/default/").status_code == 403
