"""Registering the demo's simulated engines, over REST like anybody's."""

import asyncio
from collections.abc import Iterable

import httpx

from controlplane.ops.supervisor.address import Address

_ATTEMPTS = 20
_PAUSE_S = 0.5
_SETTLED = ("warming", "ready", "draining", "drained", "maintenance")
"""States that an engine of the demo stays in: it takes requests, or somebody took it out, maybe before a restart."""
_SETTLED_WITHIN_S = 60.0


async def register_engines(control_url: str, token: str, host: str, ports: Iterable[int]) -> None:
    """Register one instance a port, and wait until they take requests; not for those that somebody took out.

    :raises httpx.HTTPError: when the control plane refuses, or does not answer for long.
    :raises TimeoutError: when no probe of theirs succeeds for long.
    """
    names = []
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=control_url, headers=headers, timeout=10, trust_env=False) as client:
        for number, port in enumerate(ports, start=1):
            settings: dict[str, object] = {
                "url": f"http://{Address(host, port)}",
                "hardware": "a100-80g",
                "labels": {"simulated": "yes"},
            }
            names.append(f"engine-{number}")
            await _put(client, f"/api/v1/instances/{names[-1]}/", settings)
        async with asyncio.timeout(_SETTLED_WITHIN_S):
            for name in names:
                await _settled(client, name)


async def _put(client: httpx.AsyncClient, path: str, settings: dict[str, object]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = await client.put(path, json=settings)
        except httpx.TransportError:
            if attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            answer.raise_for_status()
            return


async def _settled(client: httpx.AsyncClient, name: str) -> None:
    """Return when an instance takes requests, or is not to."""
    while True:
        answer = await client.get(f"/api/v1/instances/{name}/")
        if answer.raise_for_status().json()["state"] in _SETTLED:
            return
        await asyncio.sleep(_PAUSE_S / 5)
