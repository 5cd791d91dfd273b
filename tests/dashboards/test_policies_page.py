"""Editing policies: drafts, previews, publishing, conflicts, going back."""

import json

import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from controlplane.accounts.actor import SYSTEM, Actor
from controlplane.policies.models import Policy, ShadowHour, ShadowMoveHour
from controlplane.policies.presets import PRESETS
from controlplane.policies.services import revisions, workloads
from controlplane.telemetry.hub import Hub
from router.snapshot import LearntSample
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True)
EDIT = "/policies/default/edit/"


def default() -> Policy:
    return Policy.objects.select_related("live").get(name="default")


def live_content() -> dict[str, object]:
    live = default().live
    assert live is not None
    content: dict[str, object] = live.content
    return content


def edit(client: Client, wish: str, content: object, expected: int = 1, message: str = "because") -> str:
    form = {"wish": wish, "content": json.dumps(content), "expected": expected, "message": message}
    return client.post(EDIT, form, follow=True).content.decode()


def heard(hub: Hub) -> None:
    worker = FakeWorker(4, 80.0)
    for _ in range(60):
        hub.accept(worker.step())


@pytest.mark.parametrize("path", ["/policies/", "/policies/default/", "/workloads/"])
def test_strangers_are_sent_to_sign_in(path: str, fresh_hub: Hub) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_the_first_policy_is_open(signed_in: Client, fresh_hub: Hub) -> None:
    answer = signed_in.get("/policies/", follow=True)
    assert answer.redirect_chain == [("/policies/default/", 302)]
    assert "default@1" in answer.content.decode()


def test_a_draft_changes_nothing_that_routes(signed_in: Client, fresh_hub: Hub) -> None:
    before = live_content()
    text = edit(signed_in, "draft", {"b": 0.5})
    assert "draft by ada" in text
    assert default().draft == {"b": 0.5}
    assert live_content() == before
    edit(signed_in, "discard", {})
    assert default().draft is None


def test_publishing_makes_the_next_revision(signed_in: Client, fresh_hub: Hub) -> None:
    text = edit(signed_in, "publish", {"b": 0.5}, message="Softer on busy instances")
    live = default().live
    assert live is not None
    assert (live.number, live.content, live.author) == (2, {"b": 0.5}, "ada")
    assert "default@2 is published" in text
    assert "Softer on busy instances" in text
    assert "<del>1.0</del>" in text, "the history says what changed"


@pytest.mark.parametrize(
    ("content", "message", "fault"),
    [
        ({"b": -1}, "why", "at least 0"),
        ({"weight": 2}, "why", "There is no such field."),
        ({"b": "much"}, "why", 'id="fault-b" role="alert">It must be a number, not text.'),
        ({"b": 0.5}, "  ", "Say why"),
        ([], "why", "It must be an object"),
    ],
)
def test_what_cannot_be_is_refused_and_kept_in_the_editor(
    signed_in: Client, fresh_hub: Hub, content: object, message: str, fault: str
) -> None:
    text = edit(signed_in, "publish", content, message=message)
    assert fault in text
    assert json.dumps(content).replace('"', "&quot;") in text, "what was typed is still there"
    live = default().live
    assert live is not None
    assert live.number == 1


def test_a_fault_stands_at_its_field_and_what_belongs_to_none_above(signed_in: Client, fresh_hub: Hub) -> None:
    content = {"b": "much", "p_token_cap": "high", "weight": 2}
    text = edit(signed_in, "publish", content)
    assert 'aria-describedby="help-b fault-b" aria-invalid="true" autofocus' in text
    assert 'aria-describedby="help-p_token_cap fault-p_token_cap" aria-invalid="true">' in text
    assert text.count('aria-invalid="true" autofocus') == 1
    loose = text.partition('id="loose-faults"')[2].partition("</div>")[0]
    assert "<strong>weight</strong>" in loose
    assert "<strong>b</strong>" not in loose
    preview = signed_in.post("/policies/default/preview/", {"content": json.dumps(content)}).content.decode()
    assert 'data-fault-of="b" data-fault="It must be a number, not text."' in preview
    assert "<strong>weight</strong>" in preview
    assert "<strong>b</strong>" not in preview


def test_a_text_that_is_no_json_is_refused(signed_in: Client, fresh_hub: Hub) -> None:
    answer = signed_in.post(EDIT, {"wish": "publish", "content": "{", "expected": 1, "message": "why"})
    assert answer.status_code == 400
    assert "This is not JSON" in answer.content.decode()


def test_two_editors_cannot_overwrite_each_other(signed_in: Client, fresh_hub: Hub) -> None:
    revisions.publish(actor=Actor("grace"), name="default", message="I was first", expected=1, content={"a": 2.0})
    text = edit(signed_in, "publish", {"b": 0.5}, expected=1)
    assert "Somebody else published revision 2 while you edited" in text
    assert "I was first" in text
    assert "&quot;b&quot;: 0.5" in text
    assert live_content() == {"a": 2.0}
    seen = signed_in.post(EDIT, {"accepted": 2, "content": '{"b": 0.5}', "expected": 1}).content.decode()
    assert 'name="expected" value="2"' in seen
    assert "{&quot;b&quot;: 0.5}" in seen
    assert "Somebody else" not in seen
    edit(signed_in, "publish", {"b": 0.5}, expected=2)
    assert live_content() == {"b": 0.5}


def test_going_back_is_a_new_revision(signed_in: Client, fresh_hub: Hub) -> None:
    before = live_content()
    edit(signed_in, "publish", {"b": 0.5})
    form = {"to": 1, "expected": 2, "message": "It was worse"}
    text = signed_in.post("/policies/default/rollback/", form, follow=True).content.decode()
    live = default().live
    assert live is not None
    assert (live.number, live.restores, live.content) == (3, 1, before)
    assert "default@3 is live; it restores revision 1." in text


def test_the_preview_says_who_would_move(signed_in: Client, fresh_hub: Hub) -> None:
    heard(fresh_hub)
    path = "/policies/default/preview/"
    same = signed_in.post(path, {"content": "{}"}).content.decode()
    assert "None: this is what is live." in same
    assert "<strong>0 of 60</strong>" in same
    other = signed_in.post(path, {"content": '{"scorer": "least_request"}'}).content.decode()
    assert "<ins>&quot;least_request&quot;</ins>" in other
    assert "<strong>0 of" not in other
    blind = signed_in.post(path, {"content": '{"scorer": "vllm"}'}).content.decode()
    assert "None of the last 60 requests can be decided again: the router worker did not tell the load" in blind
    wrong = signed_in.post(path, {"content": '{"a": -1}'}).content.decode()
    assert "at least 0" in wrong


def test_what_workers_have_learnt_is_shown_where_there_is_something(signed_in: Client, fresh_hub: Hub) -> None:
    assert "by each worker for itself" not in signed_in.get("/policies/default/").content.decode()
    learnt = LearntSample(policy="default@1", reference_s=0.25, exponents={"h100": 0.125}, high_load=True)
    fresh_hub.accept(replace(FakeWorker(1).step(), learnt=(learnt,)))
    text = signed_in.get("/policies/default/").content.decode()
    for said in ("250 ms", "h100 0.125", "high: the exponent is lowered"):
        assert said in text
    assert "by each worker for itself" not in signed_in.get("/policies/random/").content.decode()


def test_a_policy_can_be_made_from_another_and_deleted_when_unused(signed_in: Client, fresh_hub: Hub) -> None:
    edit(signed_in, "publish", {"b": 0.5})
    signed_in.post("/policies/+new/", {"name": "softer", "begin": "copy:default"})
    made = Policy.objects.select_related("live").get(name="softer")
    assert made.live is not None
    assert made.live.content == {"b": 0.5}
    signed_in.post("/policies/+new/", {"name": "first-token", "begin": "preset:ttft-sensitive"})
    preset = Policy.objects.select_related("live").get(name="first-token").live
    assert preset is not None
    assert preset.content == PRESETS[1].content
    assert signed_in.post("/policies/+new/", {"name": "other", "begin": "preset:nothing"}).status_code == 404
    workloads.create_workload(actor=SYSTEM, name="chat", policy="softer")
    text = signed_in.post("/policies/softer/delete/", follow=True).content.decode()
    assert "workloads use it: chat" in text
    workloads.delete_workload(actor=SYSTEM, name="chat")
    signed_in.post("/policies/softer/delete/")
    assert not Policy.objects.filter(name="softer").exists()


def test_viewers_try_out_but_do_not_publish(viewer: Client, fresh_hub: Hub) -> None:
    text = viewer.get("/policies/default/").content.decode()
    assert "Your role may try policies out here, but not publish them." in text
    assert viewer.post("/policies/default/preview/", {"content": "{}"}).status_code == 200
    for path in ("default/edit", "default/rollback", "default/delete", "+new"):
        assert viewer.post(f"/policies/{path}/").status_code == 403
    for path in ("default", "default/delete", "+new"):
        assert viewer.post(f"/workloads/{path}/").status_code == 403


def test_workloads_are_made_changed_and_deleted(signed_in: Client, fresh_hub: Hub) -> None:
    form = {"name": "chat", "policy": "default", "shadow_policy": "", "match": '{"models": ["qwen*"]}'}
    text = signed_in.post("/workloads/+new/", form, follow=True).content.decode()
    assert "chat is kept" in text
    refused = signed_in.post("/workloads/chat/", form | {"match": '{"colour": "red"}'}, follow=True).content.decode()
    assert 'aria-invalid="true"' in refused
    reserved = signed_in.post("/workloads/+new/", form | {"name": "preload"}, follow=True).content.decode()
    assert "preload is the name that preloads are counted under" in reserved
    revisions.create_policy(actor=SYSTEM, name="other", content={"b": 2.0})
    signed_in.post("/workloads/chat/", form | {"shadow_policy": "other"})
    assert "other" in signed_in.get("/workloads/+rows/").content.decode()
    assert (
        "default workload cannot be deleted"
        in signed_in.post("/workloads/default/delete/", follow=True).content.decode()
    )
    signed_in.post("/workloads/chat/delete/")
    assert "chat" not in signed_in.get("/workloads/+rows/").content.decode()


def test_the_shadow_report_says_what_would_have_gone_where(signed_in: Client, fresh_hub: Hub) -> None:
    empty = signed_in.get("/workloads/default/shadow/").content.decode()
    assert "Give the workload a shadow policy" in empty
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    pair = {"workload": "default", "live_policy": "default@1", "shadow_policy": "other@3", "hour": hour}
    ShadowHour.objects.create(
        **pair,
        decisions=1_234,
        differs=617,
        prompt_tokens=1_000,
        live_hit_tokens=750,
        shadow_hit_tokens=125,
        live_product=1_234_000,
        shadow_product=2_468_000,
    )
    ShadowMoveHour.objects.create(**pair, live="gpu-1", shadow="gpu-2", decisions=617)
    text = signed_in.get("/workloads/default/shadow/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    for expected in (
        "other@3 beside default@1",
        "617 of 1,234",
        "50.0 %",
        "75.0 %",
        "12.5 %",
        "1k",
        "2k",
        "+617",
        "-617",
    ):
        assert expected in text
    assert signed_in.get("/workloads/default/shadow/?hours=2").status_code == 404
    assert signed_in.get("/workloads/nobody/shadow/").status_code == 404
