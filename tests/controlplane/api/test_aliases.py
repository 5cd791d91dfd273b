"""Aliases over REST."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from controlplane.fleet.models import Instance

ALIASES = "/api/v1/aliases/"
pytestmark = pytest.mark.django_db
CANARY = {"targets": [{"model": "old", "weight": 3}, {"model": "new", "weight": 1}]}


def test_putting_is_idempotent_and_says_what_weights_come_to(
    admin: APIClient, register: Callable[..., Instance]
) -> None:
    Instance.objects.filter(pk=register(models=("old",)).pk).update(state="ready")
    made = admin.put(f"{ALIASES}team/fast/", CANARY)
    assert made.status_code == 201, made.json()
    assert made.json()["targets"] == [
        {"model": "old", "weight": 3.0, "share": 0.75, "serving": 1},
        {"model": "new", "weight": 1.0, "share": 0.25, "serving": 0},
    ]
    again = admin.put(f"{ALIASES}team/fast/", CANARY)
    assert (again.status_code, again.json()) == (200, made.json())
    assert admin.get(f"{ALIASES}team/fast/").json() == made.json()
    assert admin.delete(f"{ALIASES}team/fast/").status_code == 204
    assert admin.get(f"{ALIASES}team/fast/").json()["code"] == "not_found"


def test_the_list_is_filtered_ordered_and_paged(admin: APIClient) -> None:
    for name, model in (("b-chat", "m"), ("a-chat", "n"), ("code", "m")):
        admin.put(f"{ALIASES}{name}/", {"targets": [{"model": model}]})

    def names(**query: str) -> list[str]:
        return [alias["name"] for alias in admin.get(ALIASES, query).json()["results"]]

    assert names() == ["a-chat", "b-chat", "code"]
    assert names(model="m") == ["b-chat", "code"]
    assert names(search="CHAT", ordering="-name") == ["b-chat", "a-chat"]
    assert names(page_size="1", page="2") == ["b-chat"]
    assert admin.get(ALIASES, {"ordering": "weight"}).json()["errors"][0]["field"] == "ordering"


def test_a_name_that_hides_a_model_is_told(admin: APIClient, register: Callable[..., Instance]) -> None:
    admin.put(f"{ALIASES}fast/", CANARY)
    assert admin.get(f"{ALIASES}fast/").json()["hides_model"] is False
    Instance.objects.filter(pk=register(models=("fast", "taken")).pk).update(state="ready")
    assert admin.get(f"{ALIASES}fast/").json()["hides_model"] is True
    refused = admin.put(f"{ALIASES}taken/", CANARY)
    assert (refused.status_code, refused.json()["code"]) == (409, "name_taken")


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("fast", {}, "targets"),
        ("fast", {"targets": []}, "targets"),
        ("fast", {"targets": [{"weight": 1}]}, "targets.0.model"),
        ("fast", {"targets": [{"model": "m", "weight": 0}]}, "targets.0.weight"),
        ("fast", {"targets": [{"model": "m", "weight": "many"}]}, "targets.0.weight"),
        ("fast", {"targets": [{"model": "fast"}]}, "targets.0.model"),
        ("two%20words", {"targets": [{"model": "m"}]}, "name"),
    ],
)
def test_what_cannot_be_is_refused_by_field(admin: APIClient, name: str, body: dict[str, object], field: str) -> None:
    answer = admin.put(f"{ALIASES}{name}/", body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert field in {fault["field"] for fault in answer.json()["errors"]}
