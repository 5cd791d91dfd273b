"""What no database can keep is refused as the caller's fault."""

import json

import pytest
from rest_framework.test import APIClient

LIST = "/api/v1/instances/"
BODY = {"name": "gpu-1", "url": "http://10.0.0.1:8000"}


@pytest.mark.parametrize("text", ["\0", "\ud800"])
@pytest.mark.parametrize("labels", [lambda text: {"rack": f"a{text}"}, lambda text: {f"a{text}": "b"}])
def test_in_a_body(admin: APIClient, text: str, labels: object) -> None:
    body = json.dumps(BODY | {"labels": labels(text)})  # type: ignore[operator]
    answer = admin.post(LIST, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert "NUL" in answer.json()["detail"]


def test_in_a_query(admin: APIClient) -> None:
    for path in (LIST, "/api/v1/audit/"):
        answer = admin.get(f"{path}?search=a%00")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_in_a_path(admin: APIClient) -> None:
    answer = admin.get(f"{LIST}a%00/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_other_text_is_kept_whole(admin: APIClient) -> None:
    assert admin.post(LIST, BODY | {"labels": {"ß": "😀 \\u0000"}}).json()["labels"] == {"ß": "😀 \\u0000"}


def test_a_body_without_end_is_malformed(admin: APIClient) -> None:
    answer = admin.post(LIST, "[" * 100_000, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
