"""Every form of every page: each field says what it means, and a refused form keeps what was typed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from django.test import Client
from django.urls import resolve

import dashboards
from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.models import Channel, ChannelKind
from controlplane.alerts.services.channels import ChannelSpec, create_channel
from controlplane.policies.services import revisions
from controlplane.telemetry.hub import Hub
from tests.dashboards.page_forms import Element, Page, controls, parse, values
from tests.dashboards.walk.world import World

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")
TEMPLATES = Path(dashboards.__file__).parent / "templates"
_ACTION = re.compile(r"""<form[^>]*method="post"[^>]*action="{% url '([^']+)'""")
_UNTYPED = frozenset({"checkbox", "radio", "file"})


class Refusal(NamedTuple):
    """What is typed into a form so that it is refused, and the field that is at fault."""

    typed: Mapping[str, str]
    at: str


REFUSALS: Mapping[str, Refusal] = {
    "admission-keep": Refusal({"queue_wait_s": "-1", "queue_requests": "77"}, "queue_wait_s"),
    "alert-act": Refusal({"comment": "x" * 5_001}, "comment"),
    "alias-edit": Refusal({"name": "two words", "model": "m", "weight": "3"}, "name"),
    "channel-change": Refusal({"name": "ops", "channel": "#here", "matchers": "nonsense"}, "matchers"),
    "channel-create": Refusal({"name": "ops", "channel": "#here", "matchers": "nonsense"}, "matchers"),
    "instance-register": Refusal({"name": "gpu-9", "url": "nonsense"}, "url"),
    "lab": Refusal({"fleet": "nonsense", "name": "a try"}, "fleet"),
    "person-create": Refusal({"username": "no good!"}, "username"),
    "policy-create": Refusal({"name": "no good!"}, "name"),
    "policy-edit": Refusal({"content": '{"a": -1}', "message": "a try", "wish": "publish"}, "a"),
    "policy-rollback": Refusal({"message": " "}, "message"),
    "settings-kind": Refusal({"least_requests": "0"}, "least_requests"),
    "silences": Refusal({"matchers": "nonsense", "comment": "a try"}, "matchers"),
    "simulation-draft": Refusal({"name": "no good!"}, "name"),
    "slo-put": Refusal({"ttft_s": "-1", "tpot_s": "0.7"}, "ttft_s"),
    "tenant-change": Refusal({"tokens_per_minute": "0", "concurrent": "9"}, "tokens_per_minute"),
    "tenant-create": Refusal({"name": "no good!"}, "name"),
    "tenant-key-create": Refusal({"key_name": "x" * 101}, "key_name"),
    "workload-change": Refusal({"concurrent": "many", "description": "a try"}, "concurrent"),
    "workload-create": Refusal({"name": "chats", "match": "{", "description": "a try"}, "match"),
}
NOT_TYPED = frozenset(
    {
        "alerts-bulk",
        "channel-act",
        "instance-move",
        "instance-remove",
        "lab-trace-delete",
        "lab-upload",
        "person-change",
        "person-link",
        "policy-delete",
        "silence-end",
        "simulation-cancel",
        "simulation-delete",
        "tenant-key-revoke",
        "tenant-prefixes",
        "logout",
    }
)
"""Forms of buttons, boxes, choices and files: nothing is typed into them."""
SECRET = frozenset({"token"})
"""Never sent back to a browser."""


@pytest.fixture
def pages(
    signed_in: Client, fresh_hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Mapping[str, tuple[str, Page]]:
    """Every form that changes something, by the name of its view: where it was found, and the page."""
    world = World(fresh_hub, monkeypatch, tmp_path)
    world.hear()
    simulation = world.simulate()
    revisions.publish(actor=SYSTEM, name="other", content={"b": 3.0}, message="Again.", expected=1)
    channel = _channel()
    paths = [
        f"/alerts/{world.alert.pk}/",
        "/alerts/silences/",
        f"/alerts/channels/{channel.pk}/",
        "/alerts/channels/+new/slack/",
        "/instances/gpu-00/",
        "/instances/+new/",
        "/lab/",
        f"/lab/{simulation}/",
        "/policies/other/",
        "/settings/",
        "/slos/",
        "/tenants/acme/",
        "/workloads/",
        "/workloads/default/",
        "/workloads/+name/",
    ]
    found: dict[str, tuple[str, Page]] = {}
    for path in paths:
        answer = signed_in.get(path, headers={"HX-Request": "true"} if path.endswith("+name/") else {})
        assert answer.status_code == 200, path
        page = parse(answer.content.decode())
        for form in page.forms():
            found.setdefault(view_of(form, path), (path, page))
    return found


def _channel() -> Channel:
    spec = ChannelSpec(name="slack", kind=ChannelKind.SLACK, settings={"token": "xoxb-1", "channel": "#a"}, matchers=())
    return create_channel(actor=SYSTEM, spec=spec)


def view_of(form: Element, path: str) -> str:
    """Return the name of the view that a form goes to."""
    address = (form.attributes.get("action") or path).partition("#")[0]
    return (resolve(address).view_name or "").removeprefix("dashboards:")


def typed_controls(form: Element) -> list[Element]:
    """Return the controls that something is typed into."""
    return [one for one in controls(form) if one.tag == "textarea" or (one.tag == "input" and not_ticked(one))]


def not_ticked(control: Element) -> bool:
    return control.attributes.get("type", "text") not in _UNTYPED


def forms_of(pages: Mapping[str, tuple[str, Page]], name: str) -> tuple[str, Page, list[Element]]:
    path, page = pages[name]
    return path, page, [form for form in page.forms() if view_of(form, path) == name and typed_controls(form)]


def test_every_form_of_the_templates_is_looked_at(pages: Mapping[str, tuple[str, Page]]) -> None:
    written = {
        name.removeprefix("dashboards:")
        for path in TEMPLATES.rglob("*.html")
        for name in _ACTION.findall(path.read_text())
    }
    assert written - {"simulation-cancel", "policy-delete"} <= pages.keys(), "or their forms are not shown here"
    assert pages.keys() <= REFUSALS.keys() | NOT_TYPED
    for name in pages.keys() & NOT_TYPED:
        path, page = pages[name]
        for form in page.forms():
            assert view_of(form, path) != name or not typed_controls(form), name


def test_every_field_says_what_it_means(pages: Mapping[str, tuple[str, Page]]) -> None:
    silent = {
        f"{name}: {control.attributes['name']}"
        for name, (path, page) in pages.items()
        for form in page.forms()
        if view_of(form, path) == name
        for control in controls(form)
        if control.attributes.get("name") != "alert" and not page.description(control)
    }
    assert silent == set()


def test_a_refused_form_keeps_what_was_typed_and_says_at_the_field_what_is_wrong(
    signed_in: Client, pages: Mapping[str, tuple[str, Page]]
) -> None:
    wrong = {name: fault for name in REFUSALS if (fault := _wrong(signed_in, pages, name))}
    assert wrong == {}


def _wrong(client: Client, pages: Mapping[str, tuple[str, Page]], name: str) -> str:
    """Have a form refused; return what is wrong with the answer, or nothing."""
    typed, at = REFUSALS[name]
    path, _, forms = forms_of(pages, name)
    names = typed.keys() - {"wish"}
    form = next(form for form in forms if names <= {one.attributes["name"] for one in controls(form)})
    address, sent = form.attributes.get("action") or path, {**values(form), **typed}
    if "data-kept" in form.attributes:
        answer = client.post(address, sent, headers={"X-Pointsman-Form": "kept"})
        told = answer.json() if answer.status_code in {400, 409} else {"status": answer.status_code, "fields": {}}
        return "" if [key.split(".")[-1] for key in told["fields"]] == [at] else str(told)
    answer = client.post(address, sent, headers={"HX-Request": "true"} if "hx-post" in form.attributes else {})
    if answer.status_code not in {200, 400, 409}:
        return f"status {answer.status_code}"
    shown = parse(answer.content.decode())
    again = next(one for one in shown.forms() if view_of(one, path) == name and typed_controls(one))
    dangling = [
        name
        for one in controls(again)
        for name in one.attributes.get("aria-describedby", "").split()
        if shown.by_id(name) is None
    ]
    if dangling:
        return f"nothing has the ids {dangling}"
    lost = [key for key in names - SECRET if values(again).get(key) != typed[key]]
    return f"lost: {lost}" if lost else "" if _faults(again, at) else f"nothing is said at {at}"


def _faults(form: Element, field: str) -> list[str]:
    """Return what a form says at a field, which may be one that only the script sends."""
    control = next((one for one in controls(form) if one.attributes["name"] == field), None)
    if control is None:
        at = f"fault-{field}"
        is_described = any(at in one.attributes.get("aria-describedby", "").split() for one in form.walk())
        return [one.text for one in form.walk() if one.attributes.get("id") == at and is_described]
    around = control.parent if control.parent is not None else form
    return [one.text for one in around.walk() if one.has_class("error") and one.text]


def test_without_the_script_what_was_typed_comes_back_with_the_refusal(
    signed_in: Client, pages: Mapping[str, tuple[str, Page]]
) -> None:
    wrong = {name: fault for name in REFUSALS if (fault := _wrong_without_script(signed_in, pages, name))}
    assert wrong == {}


def _wrong_without_script(client: Client, pages: Mapping[str, tuple[str, Page]], name: str) -> str:
    """Have a form refused whose script does not run; return what is wrong with the answer, or nothing."""
    typed, at = REFUSALS[name]
    path, _, forms = forms_of(pages, name)
    form = next((one for one in forms if "data-kept" in one.attributes), None)
    if form is None:
        return ""  # comes again by itself
    answer = client.post(form.attributes.get("action") or path, {**values(form), **typed})
    if answer.status_code not in {400, 409}:
        return f"status {answer.status_code}"
    again = parse(answer.content.decode()).forms()[-1]
    kept = values(again)
    lost = [key for key in typed if kept.get(key, "?").strip() != typed[key].strip()]
    if lost:
        return f"lost: {lost}"
    fault = next(
        (one for one in controls(again) if one.attributes["name"] == at and "aria-invalid" in one.attributes), None
    )
    return "" if fault is not None else f"nothing is said at {at}"


def test_without_the_script_it_can_be_put_right_and_sent_again(signed_in: Client, fresh_hub: Hub) -> None:
    refused = signed_in.post("/tenants/+new/", {"name": "no good!"})
    form = parse(refused.content.decode()).forms()[-1]
    assert form.attributes.get("action", "") == "", "to where it was refused"
    answer = signed_in.post("/tenants/+new/", {**values(form), "name": "fine"})
    assert (answer.status_code, answer["Location"]) == (302, "/tenants/fine/")


def test_the_script_is_told_where_to_go_and_that_a_session_has_ended(signed_in: Client, fresh_hub: Hub) -> None:
    kept = {"X-Pointsman-Form": "kept"}
    taken = signed_in.post("/tenants/+new/", {"name": "fine"}, headers=kept)
    assert (taken.status_code, taken["X-Pointsman-Location"]) == (204, "/tenants/fine/")
    ended = Client().post("/tenants/+new/", {"name": "fine"}, headers=kept)
    assert ended.status_code == 401
    assert "Sign in again" in ended.json()["message"]


@pytest.mark.parametrize(
    ("opened", "page"),
    [
        ("/tenants/+new/", "/tenants/"),
        ("/settings/people/", "/settings/"),
        ("/policies/default/edit/", "/policies/default/"),
        ("/workloads/default/delete/", "/workloads/default/"),
    ],
)
def test_an_address_that_only_takes_forms_leads_to_its_page(
    signed_in: Client, fresh_hub: Hub, opened: str, page: str
) -> None:
    answer = signed_in.get(opened, follow=True)
    assert answer.status_code == 200
    assert answer.redirect_chain[-1] == (page, 302)


def test_an_address_that_takes_no_such_method_still_says_so(signed_in: Client) -> None:
    assert signed_in.put("/tenants/+new/").status_code == 405
    assert signed_in.get("/api/v1/instances/none/drain/").status_code == 405
