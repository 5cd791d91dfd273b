"""Preview, diff, presets, and policies as YAML."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from controlplane.fleet.models import Instance
from controlplane.policies.content import parse
from controlplane.policies.presets import PRESETS
from controlplane.telemetry.hub import Hub
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db
URL = "/api/v1/policies/default/"
Register = Callable[..., Instance]


@pytest.fixture
def traffic(fresh_hub: Hub) -> list[str]:
    """Recorded decisions of the default policy, and the names of the instances."""
    worker = FakeWorker(4)
    for _ in range(120):
        fresh_hub.accept(worker.step())
    return [instance.name for instance in worker.instances]


def preview(admin: APIClient, content: dict[str, object] | None, **more: object) -> dict[str, dict[str, object]]:
    answer = admin.post(f"{URL}preview/", {"content": content, **more})
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_the_same_policy_moves_nothing(admin: APIClient, traffic: list[str]) -> None:
    recent = preview(admin, {})["recent"]
    assert recent["requests"] > 50
    assert (recent["moved"], recent["refused"]) == (0, 0)
    assert all(share["before"] == share["after"] for share in recent["shares"])
    assert sum(share["before"] for share in recent["shares"]) == recent["requests"]


def test_another_policy_moves_requests_that_are_counted(admin: APIClient, traffic: list[str]) -> None:
    recent = preview(admin, {"a": 0.0, "b": 1.0})["recent"]
    assert 0 < recent["moved"] <= recent["requests"]
    assert sum(share["after"] for share in recent["shares"]) == recent["requests"]


def test_the_fleet_of_this_moment_is_ranked_best_first(admin: APIClient, traffic: list[str]) -> None:
    now = preview(admin, {"a": 1.0, "b": 0.0}, prompt_tokens=500)["now"]
    scores = [candidate["score"] for candidate in now["candidates"]]
    assert scores == sorted(scores)
    assert now["chosen"] == now["candidates"][0]["instance"]
    assert all(candidate["score"] == candidate["p_token"] for candidate in now["candidates"])
    assert {candidate["instance"] for candidate in now["candidates"]} == set(traffic)


def test_times_are_predicted_where_the_hardware_is_known(
    admin: APIClient, traffic: list[str], register: Register
) -> None:
    assert preview(admin, {})["recent"]["before"] == {"ttft_s": None, "tpot_s": None}
    for number, name in enumerate(traffic, start=1):
        register(name, f"http://10.0.0.{number}", hardware="a100-80g")
    recent = preview(admin, {"a": 0.0, "b": 1.0})["recent"]
    assert recent["after"]["ttft_s"] > recent["before"]["ttft_s"] > 0
    assert recent["after"]["tpot_s"] <= recent["before"]["tpot_s"]


def test_what_records_cannot_answer_is_not_guessed(admin: APIClient, traffic: list[str]) -> None:
    found = preview(admin, {"scorer": "round_robin"})
    assert found["recent"]["requests"] == 0
    assert found["recent"]["unknown"] > 50
    assert "did not tell the load" in found["recent"]["reason"]
    assert found["now"]["chosen"] is not None
    needs_hardware = preview(admin, {"normalize_hardware": True})["now"]
    assert needs_hardware["chosen"] is None
    assert "hardware" in needs_hardware["fault"]


def test_without_content_the_draft_is_previewed_and_nothing_is_changed(admin: APIClient, traffic: list[str]) -> None:
    admin.put(f"{URL}draft/", {"content": {"a": 0.0}})
    assert preview(admin, None)["recent"]["moved"] > 0
    assert admin.get(URL).json()["live"]["number"] == 1


def test_a_content_that_cannot_be_has_no_preview(admin: APIClient) -> None:
    assert admin.post(f"{URL}preview/", {"content": {"a": -1}}).json()["code"] == "invalid"


def test_without_a_fleet_nothing_is_chosen(admin: APIClient, fresh_hub: Hub) -> None:
    assert preview(admin, {})["now"] == {"chosen": None, "candidates": [], "fault": None}


def test_a_diff_names_what_acts_differently(admin: APIClient) -> None:
    admin.put(f"{URL}draft/", {"content": {"a": 1.0, "b": 2.0, "cold_start": {"duration_s": 60}}})
    changes = {c["field"]: (c["before"], c["after"]) for c in admin.get(f"{URL}diff/").json()["changes"]}
    assert changes["b"] == (1.0, 2.0)
    assert changes["cold_start.duration_s"] == (None, 60.0)
    assert "a" not in changes
    admin.post(f"{URL}publish/", {"message": "x"}, headers={"If-Match": '"1"'})
    back = {c["field"]: c["after"] for c in admin.get(f"{URL}diff/?from=2&to=1").json()["changes"]}
    assert back["b"] == 1.0
    assert admin.get(f"{URL}diff/?from=1&to=1").json()["changes"] == []
    for query in ("?from=9", "?to=draft", "?from=x", "?from=²"):
        assert admin.get(f"{URL}diff/{query}").status_code == 404


def test_every_preset_can_be_published(admin: APIClient) -> None:
    listed = admin.get("/api/v1/policy-presets/").json()["presets"]
    assert [preset["name"] for preset in listed] == [preset.name for preset in PRESETS]
    for preset in PRESETS:
        parse(preset.content, name="x", revision=1)


def test_a_policy_goes_out_and_comes_in_again(admin: APIClient) -> None:
    admin.post("/api/v1/policies/", {"name": "chat", "description": "Für uns.", "content": {"a": 1.5, "hotspot": {}}})
    text = admin.get("/api/v1/policies/chat/document/", headers={"Accept": "application/yaml"})
    assert (text.status_code, text.headers["Content-Type"]) == (200, "application/yaml")
    url = "/api/v1/policies/chat/document/"
    as_draft = admin.put(url, text.content, content_type="application/yaml")
    assert as_draft.status_code == 200
    assert as_draft.json()["draft"] == {"a": 1.5, "hotspot": {}}
    admin.delete("/api/v1/policies/chat/")
    anew = admin.put(url, text.content, content_type="application/yaml")
    assert anew.status_code == 201
    assert (anew.json()["description"], anew.json()["live"]["content"]["a"]) == ("Für uns.", 1.5)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"just text",
        b"kind: other",
        b"kind: pointsman/policy/v1\nname: default\ncontent: []",
        b"kind: pointsman/policy/v1\nname: default\ncontent: {a: 2020-01-01}",
        b"kind: pointsman/policy/v1\nname: default\ncontent: {a: -1}",
        b"kind: pointsman/policy/v1\nname: default\nextra: 1",
        b"kind: pointsman/policy/v1\nname: other\ncontent: {}",
        b"kind: &a pointsman/policy/v1\nname: *a",
        b"kind: !!python/object/apply:os.system ['x']",
        b"\xff\xfe",
        b"[" * 10_000,
        b"#" * 100_000,
    ],
)
def test_a_document_that_is_none_of_ours_is_refused(admin: APIClient, text: bytes) -> None:
    answer = admin.put(f"{URL}document/", text, content_type="application/yaml")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert admin.get(URL).json()["draft"] is None


def test_only_yaml_is_read(admin: APIClient) -> None:
    assert admin.put(f"{URL}document/", {"a": 1}).json()["code"] == "unsupported_media_type"
