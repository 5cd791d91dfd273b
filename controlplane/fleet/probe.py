"""Probing engines over HTTP: many at once, each with a time limit, each with readable reasons.

Knows no rows: addresses in, results out.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from controlplane.fleet.address import host_fault
from controlplane.fleet.engine_facts import (
    MetricFacts,
    UnreadableFacts,
    read_event_endpoints,
    read_metrics,
    read_models,
)

_AT_ONCE = 64
_MAX_PAGE_BYTES = 8 * 1024 * 1024
_HTTP_OK = 200


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """An engine to probe; ``headers`` carry its credentials, ``thorough`` asks for KV-event endpoints as well."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    thorough: bool = True


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe found. ``reasons`` say what is wrong (``ok`` false) or missing (``ok`` true)."""

    ok: bool
    reasons: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    metrics: MetricFacts | None = None
    """None when there are no metrics."""
    event_endpoints: tuple[str, ...] | None = None
    """None when they were not asked for or the engine does not tell."""


class _Refused(Exception):
    """The probe ends here, for a reason that people can read."""


def probe_all(targets: Sequence[ProbeTarget], timeout_s: float) -> list[ProbeResult]:
    """Probe engines concurrently and return the results in the same order; nothing is raised."""
    return asyncio.run(_probe_all(targets, timeout_s))


async def probe(client: httpx.AsyncClient, target: ProbeTarget, timeout_s: float) -> ProbeResult:
    """Probe one engine within ``timeout_s`` seconds in all."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _probe(client, target)
    except TimeoutError:
        return ProbeResult(False, (f"No complete answer within {timeout_s:g} s.",))
    except _Refused as refusal:
        return ProbeResult(False, (str(refusal),))
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return ProbeResult(False, (f"Cannot talk to {target.url}: {error or type(error).__name__}.",))


async def _probe_all(targets: Sequence[ProbeTarget], timeout_s: float) -> list[ProbeResult]:
    limit = asyncio.Semaphore(_AT_ONCE)
    async with httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, trust_env=False) as client:

        async def one(target: ProbeTarget) -> ProbeResult:
            async with limit:
                return await probe(client, target, timeout_s)

        return list(await asyncio.gather(*(one(target) for target in targets)))


async def _probe(client: httpx.AsyncClient, target: ProbeTarget) -> ProbeResult:
    await _check_resolved(target.url)
    health = await _get(client, target, "/health")
    if health.status_code != _HTTP_OK:
        raise _Refused(f"/health answers {health.status_code}, not 200.")
    models = await _models(client, target)
    notes: list[str] = []
    metrics = await _metrics(client, target, notes)
    endpoints = await _event_endpoints(client, target) if target.thorough else None
    return ProbeResult(True, tuple(notes), models, metrics, endpoints)


async def _check_resolved(url: str) -> None:
    """Look the name up and refuse what an address may not be: a name must not smuggle in a metadata service."""
    parts = urlsplit(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, parts.port or parts.scheme)
    except OSError as error:
        raise _Refused(f"The name {parts.hostname} is not known: {error.strerror or error}.") from error
    for *_, address in found:
        if reason := host_fault(str(address[0])):
            raise _Refused(f"{parts.hostname}: {reason}")


async def _models(client: httpx.AsyncClient, target: ProbeTarget) -> tuple[str, ...]:
    answer = await _get(client, target, "/v1/models")
    if answer.status_code != _HTTP_OK:
        raise _Refused(f"/v1/models answers {answer.status_code}, not 200.")
    try:
        return read_models(answer.content)
    except UnreadableFacts as error:
        raise _Refused(f"/v1/models: {error}.") from error


async def _metrics(client: httpx.AsyncClient, target: ProbeTarget, notes: list[str]) -> MetricFacts | None:
    answer = await _get(client, target, "/metrics")
    if answer.status_code != _HTTP_OK:
        notes.append(f"/metrics answers {answer.status_code}: load is known from our own bookings only.")
        return None
    facts = read_metrics(answer.text)
    if facts.engine is None:
        notes.append("/metrics has neither vllm: nor sglang: names: load is known from our own bookings only.")
    return facts


async def _event_endpoints(client: httpx.AsyncClient, target: ProbeTarget) -> tuple[str, ...] | None:
    for path in ("/kv_event_sources", "/server_info"):
        answer = await _get(client, target, path)
        if answer.status_code == _HTTP_OK:
            try:
                return read_event_endpoints(answer.content)
            except UnreadableFacts:
                return None
    return None


async def _get(client: httpx.AsyncClient, target: ProbeTarget, path: str) -> httpx.Response:
    async with client.stream("GET", target.url + path, headers=dict(target.headers)) as answer:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > _MAX_PAGE_BYTES:
                raise _Refused(f"{path} is larger than {_MAX_PAGE_BYTES // 1024 // 1024} MB.")
    return httpx.Response(answer.status_code, content=bytes(body), request=answer.request)
