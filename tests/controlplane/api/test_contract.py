"""Whatever the OpenAPI document allows, and much that it does not, is answered as the document says: schemathesis."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tenants import create_tenant
from controlplane.accounts.services.tokens import create_token
from controlplane.aliases.services import put_alias
from controlplane.aliases.target import Target
from controlplane.fleet.models import Instance

pytestmark = [pytest.mark.django_db(databases="__all__")]
EXAMPLES = 8
"""For each operation, besides those in the document."""
KNOWN = {
    "instances": "gpu-1",
    "policies": "default",
    "workloads": "default",
    "aliases": "team/fast",
    "slos": "default",
    "tenants": "acme",
    "preloads": "acme",
}
"""Names of what there is, to be asked for as well: those that are made up are of nothing."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


api = schemathesis.openapi.from_dict(json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")))
api = api.exclude(path_regex="^/api/v1/router/(config|snapshots)/$")
"""Those two work in the event loop, on a connection that sees no test transaction; tests/controlplane/bridge."""
api.app = get_wsgi_application()


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """Keep the test's connection, and with it the test's transaction, from one request to the next."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def authorization(register: Callable[..., Instance]) -> str:
    """A token for everything, and something for it to be used on."""
    register()
    create_tenant(actor=SYSTEM, name="acme")
    put_alias(actor=SYSTEM, name="team/fast", targets=[Target("m")])
    _, text = create_token(actor=SYSTEM, name="contract", scopes=[Scope.ADMIN.value, Scope.ROUTER.value])
    return f"Bearer {text}"


@api.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_the_document_says(case: schemathesis.Case, authorization: str) -> None:
    case.call_and_validate(headers={"Authorization": authorization}, checks=CHECKS)
    known = KNOWN.get(case.path.split("/")[3])
    for parameter in {"name", "workload"} & (case.path_parameters or {}).keys():
        if known is not None:
            case.path_parameters[parameter] = known
            case.call_and_validate(headers={"Authorization": authorization}, checks=CHECKS)
