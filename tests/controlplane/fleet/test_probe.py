"""A probe finds what an engine is by itself, and says in words what is wrong."""

import asyncio
import json

import httpx
import pytest

from controlplane.fleet.probe import ProbeTarget, probe, probe_all
from tests.fakes.probed_engine import ProbedEngine

TARGET = ProbeTarget("http://127.0.0.1:8000")


async def test_a_healthy_engine_tells_models_and_cache() -> None:
    async with ProbedEngine("qwen").client() as client:
        result = await probe(client, TARGET, 5)
    assert result.ok
    assert result.reasons == ()
    assert result.models == ("qwen",)
    assert result.metrics is not None
    assert result.metrics.kv_capacity_tokens == 1600
    assert result.event_endpoints is None


async def test_kv_event_endpoints_are_found() -> None:
    engine = ProbedEngine()
    engine.pages["/kv_event_sources"] = (200, json.dumps([{"endpoint": "tcp://127.0.0.1:5557"}]).encode())
    async with engine.client() as client:
        assert (await probe(client, TARGET, 5)).event_endpoints == ("tcp://127.0.0.1:5557",)


@pytest.mark.parametrize(
    ("path", "page", "why"),
    [
        ("/health", (503, b""), "/health answers 503"),
        ("/v1/models", (401, b""), "/v1/models answers 401"),
        ("/v1/models", (200, b"<html>"), "/v1/models: the answer is not JSON"),
        ("/v1/models", (200, b'{"data":[]}'), "the model list is empty"),
    ],
)
async def test_a_failure_says_why(path: str, page: tuple[int, bytes], why: str) -> None:
    engine = ProbedEngine()
    engine.pages[path] = page
    async with engine.client() as client:
        result = await probe(client, TARGET, 5)
    assert not result.ok
    assert why in result.reasons[0]


async def test_an_engine_without_metrics_is_fine_but_that_is_said() -> None:
    engine = ProbedEngine()
    engine.pages["/metrics"] = (404, b"")
    async with engine.client() as client:
        result = await probe(client, TARGET, 5)
    assert result.ok
    assert result.metrics is None
    assert "/metrics answers 404" in result.reasons[0]


async def test_credentials_go_with_every_request() -> None:
    engine = ProbedEngine()
    async with engine.client() as client:
        await probe(client, ProbeTarget(TARGET.url, headers=(("Authorization", "Bearer k"),)), 5)
    assert {request.headers.get("Authorization") for request in engine.asked} == {"Bearer k"}


async def test_a_name_that_leads_to_a_metadata_service_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(2, 1, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)
    engine = ProbedEngine()
    async with engine.client() as client:
        result = await probe(client, ProbeTarget("http://innocent.example"), 5)
    assert not result.ok
    assert "metadata" in result.reasons[0]
    assert engine.asked == []


async def test_a_page_without_end_is_cut_off() -> None:
    engine = ProbedEngine()
    engine.pages["/metrics"] = (200, b"x" * (9 * 1024 * 1024))
    async with engine.client() as client:
        assert "larger than" in (await probe(client, TARGET, 5)).reasons[0]


async def test_an_engine_that_never_answers_is_given_up_in_time() -> None:
    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with httpx.AsyncClient(transport=httpx.MockTransport(never)) as client:
        result = await probe(client, TARGET, 0.05)
    assert "No complete answer within 0.05 s" in result.reasons[0]


def test_nobody_listening_is_a_result_not_an_error() -> None:
    (result,) = probe_all([ProbeTarget("http://127.0.0.1:1")], 2)
    assert not result.ok
    assert "Cannot talk to http://127.0.0.1:1" in result.reasons[0]
