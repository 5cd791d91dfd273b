"""The decisions page: the list, the search, the explanation."""

import re

import pytest
from django.conf import settings
from django.test import Client
from msgspec.structs import replace

from controlplane.decisions import explaining
from controlplane.decisions.keeping import keep
from controlplane.policies.presets import PRESETS
from controlplane.telemetry.decision_samples import DecisionSamples
from controlplane.telemetry.hub import Hub
from dashboards.decision_row import decision_row, matching
from router.core.instance import InstanceState
from router.snapshot import DecisionSample
from tests.fakes.answering_workers import have_answers
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture
def sample(fresh_hub: Hub) -> DecisionSample:
    """The newest of a few decisions that were heard; one instance was out."""
    worker = FakeWorker(4, 40.0)
    worker.instances[2].state = InstanceState.DRAINING
    for _ in range(20):
        fresh_hub.accept(worker.step())
    newest = fresh_hub.decisions.newest()
    assert newest is not None
    return newest


@pytest.mark.parametrize("path", ["/decisions/", "/decisions/newer/", "/decisions/any/"])
def test_strangers_are_sent_to_sign_in(path: str, fresh_hub: Hub) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_without_decisions_the_page_says_how_to_get_one(signed_in: Client, fresh_hub: Hub) -> None:
    answer = signed_in.get("/decisions/")
    assert answer.status_code == 200
    assert "No decisions yet" in answer.content.decode()
    assert f"curl -i {settings.ROUTER_URL}/v1/" in answer.content.decode()


def test_every_candidate_is_explained(signed_in: Client, sample: DecisionSample) -> None:
    text = signed_in.get(f"/decisions/{sample.request_id}/").content.decode()
    winner = decision_row(sample).winner
    assert winner is not None
    assert f"{winner.score:,.0f}" in text
    for candidate in sample.candidates:
        assert f"{candidate.p_token:,}" in text
    assert "state draining" in text
    assert "1 out of the race" in text


def test_what_a_decision_names_is_a_click_away(signed_in: Client, sample: DecisionSample, fresh_hub: Hub) -> None:
    of_a_rank = replace(sample.candidates[0], instance=f"{sample.candidates[0].instance}#1")
    fresh_hub.decisions.add(replace(sample, request_id="ranked", candidates=(of_a_rank, *sample.candidates[1:])))
    text = signed_in.get("/decisions/ranked/").content.decode()
    policy, _, _ = sample.policy.rpartition("@")
    for path in [
        f"/policies/{policy}/",
        f"/?workload={sample.workload}",
        f"/instances/{sample.candidates[0].instance}/",
    ]:
        assert f'href="{path}"' in text
    assert 'data-copy="request-id"' in text


def test_it_is_counted_how_many_policies_agree(signed_in: Client, sample: DecisionSample) -> None:
    text = signed_in.get(f"/decisions/{sample.request_id}/").content.decode()
    said = re.search(r'id="agreement">(.*?)</p>', text)
    assert said is not None
    same, asked, other, *unknown = map(int, re.findall(r"\d+", said[1]))
    assert same + other + sum(unknown) == asked
    assert text.count(">another one<") == other


def test_for_htmx_the_explanation_comes_alone(signed_in: Client, sample: DecisionSample) -> None:
    path = f"/decisions/{sample.request_id}/"
    alone = signed_in.get(path, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in alone
    assert "Why" in alone
    assert "<html" in signed_in.get(path).content.decode()


def test_a_whole_request_id_leads_to_its_decision(signed_in: Client, sample: DecisionSample) -> None:
    answer = signed_in.get("/decisions/", {"q": sample.request_id})
    assert answer["Location"] == f"/decisions/{sample.request_id}/"


def test_about_a_request_that_is_not_at_hand_the_routers_are_asked(signed_in: Client, sample: DecisionSample) -> None:
    whole = signed_in.get("/decisions/never-seen/").content.decode()
    assert "Asking the routers" in whole
    assert 'hx-get="/decisions/never-seen/"' in whole


def test_a_request_that_a_worker_remembers_is_explained_and_stays_explained(
    signed_in: Client, sample: DecisionSample, fresh_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_answers(monkeypatch, {"router-0": replace(sample, request_id="asked-for")})
    alone = signed_in.get("/decisions/asked-for/", headers={"HX-Request": "true"}).content.decode()
    assert f'Why <span class="chosen">{sample.chosen}' in alone
    fresh_hub.decisions = DecisionSamples()
    assert "Why" in signed_in.get("/decisions/asked-for/").content.decode()
    assert signed_in.get("/decisions/", {"q": "asked-for"})["Location"] == "/decisions/asked-for/"


def test_what_is_kept_is_shown_at_once_and_gives_way_to_a_newer_one(
    signed_in: Client, sample: DecisionSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(replace(sample, request_id="again", chosen="gpu-00", time_unix_s=1_000.25))
    path, after = "/decisions/again/", {"after": "1000.25"}
    have_answers(monkeypatch, {"router-0": None})
    for headers in ({}, {"HX-Request": "true"}):
        text = signed_in.get(path, headers=headers).content.decode()
        assert f'hx-get="{path}?after=1000.25"' in text
        assert '<span class="chosen">gpu-00' in text
    assert signed_in.get(path, after).status_code == 204, "nothing newer is known"
    have_answers(monkeypatch, {"router-0": replace(kept, time_unix_s=1_060.5, chosen="gpu-01")})
    text = signed_in.get(path, after).content.decode()
    assert '<span class="chosen">gpu-01' in text
    assert "The id was used again" in text
    assert "?after=" not in text, "all were asked"
    assert "?after=1060.5" in signed_in.get(path).content.decode(), "it is kept from now on"
    assert signed_in.get(path, {"after": "noon"}).status_code == 404


def test_where_no_worker_remembers_a_request_the_page_says_how_many_were_asked(
    signed_in: Client, sample: DecisionSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_answers(monkeypatch, {"router-0": None})
    alone = signed_in.get("/decisions/long-gone/", headers={"HX-Request": "true"}).content.decode()
    assert "The router worker was asked and does not remember" in alone


def test_a_worker_that_does_not_answer_is_named_after_a_while(
    signed_in: Client, sample: DecisionSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "LIMIT_S", 0.05)
    alone = signed_in.get("/decisions/never-seen/", headers={"HX-Request": "true"}).content.decode()
    assert "router-0 did not answer in time" in alone


def test_without_workers_nobody_can_be_asked(signed_in: Client, fresh_hub: Hub) -> None:
    alone = signed_in.get("/decisions/never-seen/", headers={"HX-Request": "true"}).content.decode()
    assert "nobody can be asked" in alone


def test_what_is_no_request_id_is_not_asked_about(signed_in: Client, sample: DecisionSample) -> None:
    answer = signed_in.get("/decisions/two words/")
    assert answer.status_code == 404
    assert "cannot be a request id" in answer.content.decode()


def test_the_policies_that_are_live_here_are_asked_what_they_would_have_chosen(
    signed_in: Client, sample: DecisionSample
) -> None:
    text = signed_in.get(f"/decisions/{sample.request_id}/").content.decode()
    assert "Live here" in text
    assert "@1" in text
    presets = text.partition("Presets</th>")[2].partition("Other rules</th>")[0]
    assert all(f"<td>{preset.name}" in presets for preset in PRESETS)
    assert "Not known: the router worker did not tell what the policy&#x27;s terms read" in presets, "a fake worker"


def test_newer_decisions_are_counted_not_pushed(signed_in: Client, sample: DecisionSample, fresh_hub: Hub) -> None:
    def newer() -> str:
        return signed_in.get("/decisions/newer/", {"since": sample.request_id}).content.decode()

    assert newer().strip() == ""
    fresh_hub.decisions.add(replace(sample, request_id="later"))
    assert "1 newer" in newer()


def test_filters_leave_what_was_asked_for(sample: DecisionSample) -> None:
    samples = [
        replace(sample, request_id="one", workload="chat", chosen="a"),
        replace(sample, request_id="two", workload="code", chosen="a"),
        replace(sample, request_id="three", workload="code", chosen="b"),
    ]

    def found(text: str = "", workload: str = "", instance: str = "") -> list[str]:
        return [s.request_id for s in matching(samples, text, workload, instance)]

    assert found() == ["one", "two", "three"]
    assert found(workload="code") == ["two", "three"]
    assert found(workload="code", instance="a") == ["two"]
    assert found(text="THREE") == ["three"]
    assert found(text=sample.policy) == ["one", "two", "three"]
    assert found(text="four") == []
