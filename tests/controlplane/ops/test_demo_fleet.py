"""Registering the demo's engines: also where somebody took one out before a restart."""

from functools import partial

import httpx
import pytest

from controlplane.ops.supervisor.demo_fleet import register_engines


async def test_an_engine_that_was_taken_out_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"engine-1": ["probing", "warming"], "engine-2": ["drained"], "engine-3": ["maintenance"]}
    registered = []

    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.path.split("/")[-2]
        if request.method == "PUT":
            registered.append(name)
            return httpx.Response(200)
        return httpx.Response(200, json={"state": states[name].pop(0)})

    client = partial(httpx.AsyncClient, transport=httpx.MockTransport(answer))
    monkeypatch.setattr("controlplane.ops.supervisor.demo_fleet.httpx.AsyncClient", client)
    await register_engines("http://control", "a token", "127.0.0.1", [8101, 8102, 8103])
    assert registered == list(states)
    assert not any(states.values())
