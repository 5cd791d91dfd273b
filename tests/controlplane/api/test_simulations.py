"""Simulations over REST: asked for, followed, cancelled; what came out; traces."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from controlplane.accounts.access import Scope
from controlplane.lab import tasks
from controlplane.policies.models import Policy
from tests.controlplane.lab.conftest import SMALL
from tests.controlplane.lab.test_traces import mooncake

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/simulations/"


@pytest.fixture(autouse=True)
def no_files() -> Iterator[None]:
    """Begin without trace files, and leave none."""
    folder = django_settings.DATA_DIR / "lab" / "traces"
    yield
    for path in folder.glob("*"):
        path.unlink()


@pytest.fixture
def client(caller: Callable[..., APIClient]) -> APIClient:
    """Somebody who may run simulations."""
    return caller(Scope.READ, Scope.POLICIES)


def ask(client: APIClient, **changes: Any) -> dict[str, Any]:
    """Ask for a small simulation."""
    answer = client.post(URL, SMALL | changes)
    assert answer.status_code == 201, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def test_from_asking_to_the_result(client: APIClient) -> None:
    made = ask(client, name="First", rate_scales=[0.5, 1])
    here = f"{URL}{made['id']}/"
    assert (made["state"], made["name"], made["trace_name"]) == ("queued", "First", "chatbot")
    early = client.get(f"{here}result/")
    assert (early.status_code, early.json()["code"], early.json()["state"]) == (409, "conflict", "queued")
    tasks.work()
    done = client.get(here).json()
    assert (done["state"], done["attempts"]) == ("done", 1)
    result = client.get(f"{here}result/").json()
    assert [(run["policy"], run["rate_scale"]) for run in result["runs"]][:2] == [
        ("multiplicative", 0.5),
        ("vllm", 0.5),
    ]
    assert set(result["runs"][0]["ttft_s"]) == {"mean", "p50", "p90", "p99"}
    assert result["provenance"]["seed"] == 0
    assert client.get(URL, {"state": "done"}).json()["count"] == 1
    assert client.get(URL, {"state": "queued"}).json()["count"] == 0
    assert client.delete(here).status_code == 204
    assert client.get(here).status_code == 404


def test_the_report_is_a_page_that_needs_nothing_else(client: APIClient) -> None:
    made = ask(client)
    tasks.work()
    for accept in ("*/*", "text/html"):
        answer = client.get(f"{URL}{made['id']}/report.html", HTTP_ACCEPT=accept)
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/html")
        assert answer["Content-Disposition"].startswith("attachment")
    text = answer.content.decode()
    assert "Pointsman simulation: chatbot" in text
    assert 'src="http' not in text


def test_every_fault_is_named_by_its_field(client: APIClient) -> None:
    answer = client.post(URL, {"trace": "chatbot", "policies": ["vllm"], "fleet": "abacus:2", "requests": 10**9})
    assert answer.status_code == 400
    assert {fault["field"] for fault in answer.json()["errors"]} == {"fleet", "requests"}
    assert client.post(URL, {"policies": ["vllm"]}).json()["errors"][0]["field"] == "trace"
    assert client.get(URL, {"state": "asleep"}).json()["code"] == "invalid"


def test_cancelling(client: APIClient) -> None:
    made = ask(client)
    here = f"{URL}{made['id']}/"
    assert client.delete(here).json()["code"] == "conflict"
    assert client.post(f"{here}cancel/").json()["state"] == "cancelled"
    again = client.post(f"{here}cancel/")
    assert (again.status_code, again.json()["code"]) == (409, "illegal_transition")


def test_a_result_becomes_a_draft(client: APIClient) -> None:
    made = ask(client, policies=["multiplicative:a=2"])
    answer = client.post(f"{URL}{made['id']}/draft/", {"policy": "multiplicative:a=2", "name": "default"})
    assert answer.status_code == 200
    assert answer.json()["draft"] == {"a": 2.0}
    assert Policy.objects.get(name="default").draft == {"a": 2.0}
    missing = client.post(f"{URL}{made['id']}/draft/", {"policy": "vllm", "name": "default"})
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_traces_are_uploaded_used_and_deleted(client: APIClient) -> None:
    file = SimpleUploadedFile("conv.jsonl", mooncake(20))
    answer = client.post(f"{URL}traces/", {"file": file}, format="multipart")
    assert answer.status_code == 201, answer.json()
    kept = answer.json()
    assert (kept["name"], kept["format"], kept["statistics"]["requests"]) == ("conv.jsonl", "mooncake", 20)
    assert client.get(f"{URL}traces/").json()["count"] == 1
    made = ask(client, trace=kept["id"], requests=10)
    refused = client.delete(f"{URL}traces/{kept['id']}/")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    tasks.work()
    result = client.get(f"{URL}{made['id']}/result/").json()
    assert (result["provenance"]["trace"], result["provenance"]["requests"]) == ("conv.jsonl", 10)
    assert client.delete(f"{URL}traces/{kept['id']}/").status_code == 204
    assert client.get(f"{URL}{made['id']}/").json()["trace"] is None


@pytest.mark.parametrize(
    ("content", "status", "code", "words"),
    [
        (mooncake(2) + b"{}\n", 400, "invalid", "Line 3: "),
        (b"\n" * (1 << 20 | 1), 413, "too_large", "1 MiB"),
    ],
)
def test_what_is_no_trace_is_refused(
    client: APIClient, settings: Any, content: bytes, status: int, code: str, words: str
) -> None:
    settings.LAB_UPLOAD_MIB = 1
    file = SimpleUploadedFile("x.jsonl", content)
    answer = client.post(f"{URL}traces/", {"file": file}, format="multipart")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert words in answer.json()["detail"]
    assert list((django_settings.DATA_DIR / "lab" / "traces").iterdir()) == []


def test_recordings_are_listed_and_taken(client: APIClient) -> None:
    folder = django_settings.DATA_DIR / "recordings"
    folder.mkdir(exist_ok=True)
    file = folder / "router-0.jsonl"
    request = '{"t": 0, "in": 10, "out": 2}\n'
    file.write_text('{"pointsman_recording": 1, "block_tokens": 16}\n' + 2 * request + request[:4])
    try:
        assert [one["name"] for one in client.get(f"{URL}recordings/").json()] == ["router-0.jsonl"]
        taken = client.post(f"{URL}recordings/", {"name": "router-0.jsonl"})
        assert client.post(f"{URL}recordings/", {"name": "../x.jsonl"}).status_code == 404
    finally:
        file.unlink()
    assert (taken.status_code, taken.json()["source"]) == (201, "recording"), taken.json()
