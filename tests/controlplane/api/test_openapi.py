"""The OpenAPI document: valid, complete, with examples, and the same as the golden file.

After a change that is meant, write the golden file anew (``COMMAND`` below).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

GOLDEN = Path(__file__).with_name("openapi.json")
COMMAND = "python manage.py spectacular --format openapi-json --file tests/controlplane/api/openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")


def document() -> dict[str, Any]:
    """Return the document, as plain JSON."""
    made = SchemaGenerator().get_schema(request=None, public=True)
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The document."""
    return document()


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (path, method, operation)."""
    for path, item in schema["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def test_it_is_valid_openapi_3_1(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    validate_schema(schema)


def test_it_is_made_without_warnings() -> None:
    GENERATOR_STATS.reset()
    document()
    assert not GENERATOR_STATS, "run `pointsman spectacular --validate` to read them"


def test_it_is_the_golden_one(schema: dict[str, Any]) -> None:
    assert schema == json.loads(GOLDEN.read_text(encoding="utf-8")), f"if the change is meant, run `{COMMAND}`"


def test_every_operation_is_described_tagged_and_has_problems(schema: dict[str, Any]) -> None:
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        assert operation.get("description"), where
        assert operation.get("tags"), where
        assert "401" in operation["responses"], where
        assert "403" in operation["responses"], where


def test_operation_ids_are_unique(schema: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(ids) == len(set(ids))


def test_every_json_that_is_sent_has_an_example_that_its_schema_allows(schema: dict[str, Any]) -> None:
    missing = []
    for path, method, operation in operations(schema):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is None or "$ref" not in body.get("schema", {}):
            continue
        if not body.get("examples"):
            missing.append(f"{method} {path}")
        for example in body.get("examples", {}).values():
            jsonschema.validate(example["value"], {**body["schema"], "components": schema["components"]})
    assert missing == []
