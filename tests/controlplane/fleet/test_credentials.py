"""Credentials of engines: sealed, sent to the engine, shown to nobody."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from controlplane.accounts.models import AuditEntry
from controlplane.bridge.models import ConfigRevision
from controlplane.bridge.publisher import current, newest_number
from controlplane.fleet.models import Instance
from controlplane.fleet.probe import ProbeResult, ProbeTarget
from controlplane.fleet.services import probes
from router.config import parse_config

SECRET = "Bearer sk-of-the-engine"
URL = "/api/v1/instances/gpu-1/"


def put(admin: APIClient, **more: object) -> dict[str, object]:
    answer = admin.put(URL, {"url": "http://10.0.0.1:8000", **more})
    assert answer.status_code in {200, 201}, answer.content
    return dict(answer.json())


def test_they_are_told_to_routers_and_to_nobody_else(admin: APIClient) -> None:
    shown = put(admin, authorization=SECRET)
    assert shown["has_authorization"] is True
    assert SECRET not in str(shown)
    (told,) = parse_config(current()[1]).instances
    assert told.authorization == SECRET
    rows = [*Instance.objects.values(), *ConfigRevision.objects.values(), *AuditEntry.objects.values()]
    assert not any("sk-of-the-engine" in str(value) for row in rows for value in row.values())
    assert not any(b"sk-of-the-engine" in bytes(row["sealed_body"]) for row in ConfigRevision.objects.values())


def test_leaving_them_out_keeps_them_and_a_blank_text_drops_them(admin: APIClient) -> None:
    put(admin, authorization=SECRET)
    before = newest_number()
    assert put(admin)["has_authorization"] is True
    assert put(admin, authorization=SECRET)["has_authorization"] is True
    assert newest_number() == before
    assert put(admin, authorization="")["has_authorization"] is False
    assert newest_number() == before + 1


@pytest.mark.parametrize("value", ["two\nlines", "é", " ", "x\r\nHost: y"])
def test_what_is_no_header_value_is_refused(admin: APIClient, value: str) -> None:
    answer = admin.put(URL, {"url": "http://10.0.0.1:8000", "authorization": value})
    assert answer.status_code in {200, 201, 400}
    row = Instance.objects.first()
    assert row is None or row.authorization is None


def test_probes_carry_them(admin: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    put(admin, authorization=SECRET)
    asked: list[ProbeTarget] = []

    def answer(targets: list[ProbeTarget], timeout_s: float) -> list[ProbeResult]:
        asked.extend(targets)
        return [ProbeResult(True, (), ("sim",)) for _ in targets]

    monkeypatch.setattr(probes, "probe_all", answer)
    probes.probe_instances(list(Instance.objects.all()))
    assert asked[0].headers == (("Authorization", SECRET),)


def test_with_another_signing_key_the_probe_says_so_and_routers_get_no_nonsense(
    admin: APIClient, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(admin, authorization=SECRET)
    before = newest_number()
    settings.SECRET_KEY = "another key of this installation!!"  # type: ignore[attr-defined]
    asked: Callable[..., list[ProbeResult]] = lambda targets, timeout_s: [ProbeResult(True) for _ in targets]  # noqa: E731
    monkeypatch.setattr(probes, "probe_all", asked)
    probes.probe_instances(list(Instance.objects.all()))
    assert "POINTSMAN_SECRET_KEY" in Instance.objects.get().probe_reasons[0]
    number, body = current()
    assert number > before
    assert parse_config(body).instances[0].authorization is None
