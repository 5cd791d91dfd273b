"""The configuration flow between real processes: published under load, outlived, revoked."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.plant import CHAT, ENGINES, MODEL, Plant, small_fleet
from tests.e2e.processes import eventually, is_ready, running, stop
from tests.e2e.task_worker import running_tasks
from tests.patience import PATIENCE_S

STREAMS = 200
AWAY_S = float(os.environ.get("POINTSMAN_TEST_AWAY_S", "12"))
"""How long the control plane is away."""
REQUESTS = 20
"""Answered at least in every part of that test."""
TOKENS_PER_MINUTE = 2_000
QUOTA_S = 15.0
QUOTA_CLIENTS = 50
OTHER_MODEL = "sim-next"
"""Another name of what the engines serve: their answers tell by which one they were asked."""
ASKED = 80
"""Requests to each worker that show how it splits a name."""
ENDLESS = {"model": MODEL, "messages": [{"role": "user", "content": "go on"}], "max_tokens": 4_000, "stream": True}
PAUSE_S = 0.2
"""How long a client that was refused waits before it asks again."""
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    found = Plant(tmp_path_factory.mktemp("plant"))
    found.prepare()
    engine = ["-m", "router.cli", "engine", "--port", str(found.engines[0]), "--count", str(ENGINES)]
    with ExitStack() as stack:
        models = ["--model", MODEL, "--model", OTHER_MODEL]
        stack.enter_context(running([*engine, *models], found.folder / "engines.log"))
        stack.enter_context(running_tasks(found.folder / "celery.log", found.data))
        stack.enter_context(found.serving())
        for port in found.engines:
            eventually(is_ready(f"http://127.0.0.1:{port}/health"), "the engine is ready")
            settings = {"url": f"http://127.0.0.1:{port}", "hardware": "a100-80g"}
            found.api.put(f"/api/v1/instances/gpu-{port}/", json=settings).raise_for_status()
        routable = "/api/v1/instances/?state=warming&state=ready"
        eventually(lambda: found.api.get(routable).json()["count"] == ENGINES, "every instance takes requests")
        stack.enter_context(found.routing(0))
        stack.enter_context(found.routing(1))
        eventually(lambda: found.convergence()["applied"], "both workers run the newest configuration")
        yield found
        found.api.close()


async def stream(client: httpx.AsyncClient, url: str, number: int, begun: asyncio.Semaphore) -> bool:
    """Send one stream and return whether it came whole."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"request {number}"}],
        "max_tokens": 40,
        "stream": True,
    }
    received = b""
    async with client.stream("POST", f"{url}{CHAT}", json=body) as answer:
        async for part in answer.aiter_bytes():
            if not received:
                begun.release()
            received += part
    return answer.status_code == 200 and received.endswith(b"data: [DONE]\n\n")


async def publish_during_streams(plant: Plant) -> tuple[list[bool], float]:
    """Publish while streams run; return which of them came whole, and the seconds until every worker had it."""
    begun = asyncio.Semaphore(0)
    limits = httpx.Limits(max_connections=STREAMS)
    async with httpx.AsyncClient(timeout=PATIENCE_S, limits=limits) as client:
        tasks = [
            asyncio.create_task(stream(client, plant.router_url(number % 2), number, begun))
            for number in range(STREAMS)
        ]
        await begun.acquire()
        took_s = await asyncio.to_thread(publish, plant)
        return await asyncio.gather(*tasks), took_s


def publish(plant: Plant) -> float:
    before = plant.convergence()["revision"]
    began_s = time.monotonic()
    answer = plant.api.post(
        "/api/v1/policies/default/publish/",
        json={"message": "Fewer at once.", "content": {"b": 1.5}},
        headers={"If-Match": plant.api.get("/api/v1/policies/default/").headers["ETag"]},
    )
    answer.raise_for_status()
    eventually(lambda: plant.applied(before + 1), "every worker runs what was published")
    return time.monotonic() - began_s


def test_a_policy_published_while_200_streams_run_breaks_none(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    whole, took_s = asyncio.run(publish_during_streams(plant))
    with capsys.disabled():
        print(f"\n{STREAMS} streams, applied by every worker after {took_s:.2f} s")
    assert whole == [True] * STREAMS
    assert [plant.chat(number).headers["x-pointsman-policy"] for number in (0, 1)] == ["default@2"] * 2


def test_an_invalid_policy_changes_nothing_and_says_why(plant: Plant) -> None:
    before = plant.convergence()["revision"]
    tag = plant.api.get("/api/v1/policies/default/").headers["ETag"]
    answer = plant.api.post(
        "/api/v1/policies/default/publish/",
        json={"message": "Oops.", "content": {"b": -1}},
        headers={"If-Match": tag},
    )
    assert answer.status_code == 400
    assert "b is -1" in answer.json()["detail"]
    assert plant.convergence()["revision"] == before
    assert plant.api.get("/api/v1/policies/default/").headers["ETag"] == tag


def test_a_revoked_key_is_refused_within_moments(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant.api.post("/api/v1/tenants/", json={"name": "acme"}).raise_for_status()
    made = plant.api.post("/api/v1/tenants/acme/keys/", json={"name": "prod"}).raise_for_status().json()
    bearer = {"Authorization": f"Bearer {made['key']}"}
    for number in (0, 1):
        eventually(lambda n=number: plant.chat(n, **bearer).status_code == 200, "the key is known")  # type: ignore[misc]
    plant.api.delete(f"/api/v1/tenants/acme/keys/{made['id']}/").raise_for_status()
    began_s = time.monotonic()
    for number in (0, 1):
        eventually(lambda n=number: plant.chat(n, **bearer).status_code == 401, "the key is refused")  # type: ignore[misc]
    with capsys.disabled():
        print(f"\nrefused by every worker after {time.monotonic() - began_s:.2f} s")


def test_what_a_tenant_used_is_counted(plant: Plant) -> None:
    plant.api.post("/api/v1/tenants/", json={"name": "counted"}).raise_for_status()
    made = plant.api.post("/api/v1/tenants/counted/keys/", json={"name": "prod"}).raise_for_status().json()
    bearer = {"Authorization": f"Bearer {made['key']}"}
    eventually(lambda: plant.chat(0, **bearer).status_code == 200, "the key is known")

    def used() -> int:
        rows = plant.api.get("/api/v1/tenants/counted/usage/").raise_for_status().json()["results"]
        return sum(row["prompt_tokens"] + row["output_tokens"] for row in rows)

    assert eventually(used, "the use is on record") > 0


async def tokens_let_in(plant: Plant, key: str, seconds: float) -> int:
    """Ask without a pause, through both workers, and return what engines counted for what was let in."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello " * 20}], "max_tokens": 10}
    for number in range(QUOTA_CLIENTS):  # workers learn how many bytes a token has: a reservation is an estimate
        httpx.post(f"{plant.router_url(number % 2)}{CHAT}", json=body, timeout=PATIENCE_S).raise_for_status()
    ends_s = time.monotonic() + seconds
    used = 0
    async with httpx.AsyncClient(timeout=PATIENCE_S, headers={"Authorization": f"Bearer {key}"}) as client:

        async def ask(number: int) -> None:
            nonlocal used
            while time.monotonic() < ends_s:
                answer = await client.post(f"{plant.router_url(number % 2)}{CHAT}", json=body)
                if answer.status_code == 200:
                    used += answer.json()["usage"]["total_tokens"]
                else:
                    assert answer.status_code == 429, answer.text
                    await asyncio.sleep(PAUSE_S)

        await asyncio.gather(*map(ask, range(QUOTA_CLIENTS)))
    return used


def test_two_workers_keep_to_one_quota_together(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    limits = {"name": "thrifty", "tokens_per_minute": TOKENS_PER_MINUTE}
    plant.api.post("/api/v1/tenants/", json=limits).raise_for_status()
    made = plant.api.post("/api/v1/tenants/thrifty/keys/", json={"name": "prod"}).raise_for_status().json()
    eventually(lambda: plant.convergence()["applied"], "both workers know the quota")
    used = asyncio.run(tokens_let_in(plant, made["key"], QUOTA_S))
    allowed = TOKENS_PER_MINUTE * (1 + QUOTA_S / 60)
    with capsys.disabled():
        print(f"\n{used} tokens were let in, {allowed:.0f} are allowed in that time")
    assert 0.8 * allowed <= used <= 1.05 * allowed


def test_a_workload_is_recognised_by_its_rule(plant: Plant) -> None:
    rule = {"name": "search", "policy": "round_robin", "match": {"headers": {"x-team": "search"}}}
    plant.api.post("/api/v1/workloads/", json=rule).raise_for_status()
    for number in (0, 1):
        eventually(
            lambda n=number: plant.chat(n, **{"x-team": "search"}).headers["x-pointsman-policy"] == "round_robin@1",  # type: ignore[misc]
            "the rule is in force",
        )
        assert plant.chat(number).headers["x-pointsman-policy"].startswith("default@")


async def models_behind(plant: Plant, number: int, name: str) -> Counter[str]:
    """Ask a worker many times for a name; return how often each model answered."""
    body = {"model": name, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    async with httpx.AsyncClient(timeout=PATIENCE_S, limits=httpx.Limits(max_connections=16)) as client:
        answers = await asyncio.gather(
            *(client.post(f"{plant.router_url(number)}{CHAT}", json=body) for _ in range(ASKED))
        )
    return Counter(answer.raise_for_status().json()["model"] for answer in answers)


def test_a_name_put_by_rest_is_served_by_both_workers_in_its_shares(plant: Plant) -> None:
    split = {"targets": [{"model": MODEL, "weight": 3}, {"model": OTHER_MODEL, "weight": 1}]}
    url = "/api/v1/aliases/team/fast/"
    plant.api.put(url, json=split).raise_for_status()
    for number in (0, 1):
        eventually(lambda n=number: "team/fast" in plant.models(n), "the name is known")  # type: ignore[misc]
    for number in (0, 1):
        told = asyncio.run(models_behind(plant, number, "team/fast"))
        assert set(told) == {MODEL, OTHER_MODEL}
        assert 0.55 * ASKED <= told[MODEL] <= 0.95 * ASKED, "four standard deviations around three quarters"
    plant.api.delete(url).raise_for_status()
    for number in (0, 1):
        eventually(lambda n=number: "team/fast" not in plant.models(n), "the name is gone")  # type: ignore[misc]


@asynccontextmanager
async def endless_streams(plant: Plant, count: int, **headers: str) -> AsyncIterator[list[int]]:
    """Ask the first worker for so many streams; give the statuses of those that have begun, and leave them all."""
    begun: list[int] = []

    async def run(client: httpx.AsyncClient) -> None:
        async with client.stream("POST", f"{plant.router_url(0)}{CHAT}", json=ENDLESS, headers=headers) as answer:
            async for _ in answer.aiter_bytes():
                begun.append(answer.status_code)
                await asyncio.Event().wait()

    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        streams = [asyncio.create_task(run(client)) for _ in range(count)]
        try:
            yield begun
        finally:
            for one in streams:
                one.cancel()
            await asyncio.gather(*streams, return_exceptions=True)


async def until(ask: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(eventually, ask, what)


async def test_the_limit_of_a_workload_holds_others_go_on_and_all_have_their_turn(plant: Plant) -> None:
    limited = {"name": "narrow", "policy": "default", "concurrent": 2}
    plant.api.post("/api/v1/workloads/", json=limited).raise_for_status()
    await until(lambda: plant.convergence()["applied"], "both workers know the limit")
    queued = 'pointsman_queued{workload="narrow"}'
    async with endless_streams(plant, 5, **{"x-pointsman-workload": "narrow"}) as begun:
        await until(lambda: plant.metric(0, queued) == 3 and len(begun) == 2, "two are served, three wait")
        assert (await asyncio.to_thread(plant.chat, 0)).status_code == 200, "another workload does not wait"
        assert (len(begun), plant.metric(0, queued)) == (2, 3)
        plant.api.patch("/api/v1/workloads/narrow/", json={"concurrent": None}).raise_for_status()
        await until(lambda: len(begun) == 5, "without a limit nobody waits")
    assert begun == [200] * 5
    await until(lambda: plant.metric(0, queued) == 0, "nothing is left behind")


async def test_a_full_fleet_lets_some_wait_and_tells_the_others_why_not(plant: Plant) -> None:
    url = "/api/v1/router/admission/"
    rule = {"instance_requests": 1, "queue_requests": 1, "queue_wait_s": 60}
    plant.api.put(url, json=rule, headers={"If-Match": plant.api.get(url).headers["ETag"]}).raise_for_status()
    try:
        await until(lambda: plant.convergence()["applied"], "both workers know the rule")
        async with endless_streams(plant, ENGINES + 1) as begun:
            await until(
                lambda: len(begun) == ENGINES and plant.metric(0, 'pointsman_queued{workload="default"}') == 1,
                "every engine is full and one request waits",
            )
            series = 'pointsman_queue_refused_total{workload="default",reason="queue_full"}'
            before = plant.metric(0, series)
            refused = await asyncio.to_thread(plant.chat, 0)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "queue_full"
            assert "waiting already" in refused.json()["error"]["message"]
            assert plant.metric(0, series) == before + 1
    finally:
        tag = plant.api.get(url).headers["ETag"]
        plant.api.put(url, json={}, headers={"If-Match": tag}).raise_for_status()
    await until(lambda: plant.convergence()["applied"], "both workers are open again")
    assert plant.chat(0).status_code == 200


def test_requests_go_on_without_a_control_plane_also_through_a_worker_that_restarts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One worker is under load from before the outage until after it; the other is restarted during the outage.

    Of that other one, what is claimed is about all that is sent while its port is open: until it is told to stop, and
    from when it is ready again.
    """
    plant = Plant(tmp_path)
    plant.prepare()
    with ExitStack() as stack:
        web = stack.enter_context(small_fleet(plant))
        stack.enter_context(plant.routing(0))
        first = stack.enter_context(plant.routing(1))
        eventually(lambda: plant.convergence()["applied"], "both workers run the newest configuration")
        with plant.load(0) as throughout:
            eventually(lambda: throughout.whole >= REQUESTS, "the load runs")
            os.kill(web.pid, signal.SIGKILL)
            web.wait(PATIENCE_S)
            away_until_s = time.monotonic() + AWAY_S
            with plant.load(1) as before:
                eventually(lambda: before.whole >= REQUESTS, "the other worker answers as well")
            stop(first)
            stack.enter_context(plant.routing(1))
            with plant.load(1) as after:
                eventually(lambda: time.monotonic() >= away_until_s, "the outage is over", AWAY_S + PATIENCE_S)
                during = throughout.whole
            stack.enter_context(plant.serving())
            eventually(lambda: plant.convergence()["applied"], "both workers are heard again")
            eventually(lambda: throughout.whole >= during + REQUESTS, "the load still runs")
    plant.api.close()
    loads = (throughout, before, after)
    with capsys.disabled():
        print(f"\nthe control plane away for {AWAY_S:g} s: {[load.whole for load in loads]} answered whole")
    assert [load.failures for load in loads] == [[], [], []]
    assert after.whole >= REQUESTS
    assert after.policies == before.policies == throughout.policies == {"default@1"}
