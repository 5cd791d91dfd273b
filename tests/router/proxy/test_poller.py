"""Load polling: recorded metrics of real engines, what is missing, restarts, and the models of the fleet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from router.proxy import poller
from router.proxy.drift import REPORTS, Drift
from router.proxy.engine_metrics import EngineReading, read_metrics, restarted
from router.proxy.poller import LoadPoller
from router.state.report import EngineReport
from tests.fakes.engine import FakeEngine, Peer, Received, http
from tests.router.proxy.harness import Proxy, chat_body, proxying
from tests.shared_material import shared_path


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("vllm-0.32.0", EngineReport(running=0, waiting=0, kv_use=0.0, kv_block_tokens=32, kv_capacity_tokens=32768)),
        ("vllm-0.28.0", EngineReport(running=0, waiting=0, kv_use=0.0, kv_block_tokens=16, kv_capacity_tokens=None)),
        ("dp2", EngineReport(running=0, waiting=0, kv_use=0.0, kv_block_tokens=16, kv_capacity_tokens=None)),
        ("sglang-0.5.23", EngineReport(running=0, waiting=0, kv_use=0.0, kv_capacity_tokens=16384)),
        ("llamacpp", EngineReport(running=0, waiting=0, kv_use=None)),
    ],
)
def test_recorded_metrics_are_read(name: str, report: EngineReport) -> None:
    reading = read_metrics(shared_path(f"samples/metrics-{name}.txt").read_bytes())
    if report.kv_capacity_tokens is None:
        known = reading.report
        assert (known.running, known.waiting, known.kv_use) == (report.running, report.waiting, report.kv_use)
    else:
        assert reading.report == report
    if "vllm" in name:
        assert reading.started_unix_s is not None
        assert reading.missing == ()


def test_ranks_of_one_engine_are_added_up_and_the_fullest_kv_counts() -> None:
    text = b"\n".join(
        b'vllm:num_requests_running{engine="%d"} %d.0\nvllm:num_requests_waiting{engine="%d"} 1.0\n'
        b'vllm:kv_cache_usage_perc{engine="%d"} 0.%d' % (rank, rank + 2, rank, rank, rank + 4)
        for rank in range(2)
    )
    assert read_metrics(text).report == EngineReport(running=5, waiting=2, kv_use=0.5)


@pytest.mark.parametrize("text", [b"", b"vllm:num_requests_active 3\n", b"vllm:num_requests_running NaN\n", b"\xff\0"])
def test_what_is_missing_or_renamed_is_unknown_and_never_zero(text: bytes) -> None:
    reading = read_metrics(text)
    assert (reading.report.running, reading.report.waiting, reading.report.kv_use) == (None, None, None)
    assert reading.missing == ("running", "waiting", "kv_use")


@pytest.mark.parametrize(
    "text",
    [
        b'vllm:num_requests_running{a="1"} 1.7e308\nvllm:num_requests_running{a="2"} 1.7e308\n',
        b'vllm:num_requests_running{engine="' + b"1" * 5000 + b'"} inf\n',
        b'vllm:cache_config_info{block_size="' + b"9" * 5000 + b'",num_gpu_blocks="2"} 1\n',
    ],
    ids=["a sum without end", "a long rank", "a long block size"],
)
def test_numbers_that_no_engine_has_are_unknown(text: bytes) -> None:
    report = read_metrics(text, rank=0).report
    assert (report.running, report.kv_block_tokens, report.kv_capacity_tokens) == (None, None, None)


@pytest.mark.parametrize(
    ("before", "after", "is_another"),
    [
        (b"process_start_time_seconds 1\n", b"process_start_time_seconds 1\n", False),
        (b"process_start_time_seconds 1\n", b"process_start_time_seconds 2\n", True),
        (b"vllm:prompt_tokens_total 9\n", b"vllm:prompt_tokens_total 3\n", True),
        (b"vllm:prompt_tokens_total 9\n", b"vllm:prompt_tokens_total 9\n", False),
        (b"vllm:prompt_tokens_total 9\n", b"", False),
    ],
)
def test_a_restart_is_told_by_start_time_or_by_a_counter_that_went_back(
    before: bytes, after: bytes, is_another: bool
) -> None:
    assert restarted(read_metrics(before), read_metrics(after)) is is_another


RESETS = 'http_requests_total{{handler="/reset_prefix_cache",method="POST",status="2xx"}} {}\n'


class Talking(FakeEngine):
    """An engine that says what it is told to say."""

    def __init__(self, running: int = 0, started: int = 1, model: str = "m") -> None:
        super().__init__(self._serve)
        self.running = running
        self.started = started
        self.model = model
        self.silent = False
        self.resets = 0
        self.scraped = asyncio.Event()

    async def _serve(self, request: Received, peer: Peer) -> None:
        if request.path == "/metrics":
            text = "" if self.silent else f"vllm:num_requests_running {self.running}.0\n"
            text += f"vllm:num_requests_waiting 0.0\nprocess_start_time_seconds {self.started}\n"
            text += RESETS.format(self.resets)
            peer.send(http("200 OK", text.encode(), "text/plain"))
            self.scraped.set()
        elif request.path == "/v1/models":
            card = f'{{"id":"{self.model}","object":"model","owned_by":"vllm","max_model_len":8192}}'
            peer.send(http("200 OK", f'{{"object":"list","data":[{card}]}}'.encode()))
        else:
            peer.send(http("200 OK", b"{}"))

    async def scrape(self) -> None:
        """Wait for the answer to a scrape that began after now to have arrived."""
        for _ in range(2):
            self.scraped.clear()
            await self.scraped.wait()


@asynccontextmanager
async def polling(proxy: Proxy) -> AsyncIterator[None]:
    task = asyncio.create_task(LoadPoller(proxy.plane, Random(1), every_s=0.01).run())
    try:
        yield
    finally:
        task.cancel()


async def test_work_that_others_put_on_an_engine_counts() -> None:
    async with Talking(running=5) as busy, Talking() as idle, proxying(busy, idle) as proxy, polling(proxy):
        await busy.scrape()
        await idle.scrape()
        assert [view.bs for view in proxy.plane.fleet.views] == [5, 0]
        for _ in range(4):
            assert (await proxy.chat()).fields["x-pointsman-instance"] == "e1"


async def test_metrics_that_vanish_are_unknown_and_age_is_kept() -> None:
    async with Talking(running=5) as engine, proxying(engine) as proxy, polling(proxy):
        await engine.scrape()
        engine.silent = True
        await engine.scrape()
        known = next(iter(proxy.plane.fleet)).reconciled
        assert known is not None
        assert known.report.running is None


async def test_a_restarted_engine_holds_nothing_any_more() -> None:
    async with Talking() as engine, proxying(engine) as proxy, polling(proxy):
        await engine.scrape()
        await proxy.chat("x" * 1000)
        index = proxy.plane.fleet.index
        assert index.resident(0) > 0
        engine.started = 2
        await engine.scrape()
        assert index.resident(0) == 0


async def test_models_are_the_union_of_what_engines_say_and_what_is_configured() -> None:
    async with Talking(model="a") as one, Talking(model="b") as two, proxying(one, two) as proxy, polling(proxy):
        await one.scrape()
        await two.scrape()
        async with proxy.client() as client:
            listed = (await client.get("/v1/models")).json
        assert listed["object"] == "list"
        cards = {card["id"]: card for card in listed["data"]}
        assert set(cards) == {"a", "b", "m"}
        assert cards["a"]["max_model_len"] == 8192


async def test_polls_end_with_their_instance() -> None:
    async with Talking() as one, Talking() as two, proxying(one) as proxy, polling(proxy):
        await one.scrape()
        proxy.apply([two])
        await two.scrape()
        while one.open:
            await asyncio.sleep(0.001)
        seen = len(one.requests)
        await two.scrape()
        assert len(one.requests) == seen


async def test_a_fault_in_one_poll_costs_that_poll_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = asyncio.Event()

    def fails_once(text: bytes, rank: int | None = None) -> EngineReading:
        monkeypatch.setattr(poller, "read_metrics", read_metrics)
        polled.set()
        raise OverflowError("a fault of ours")

    monkeypatch.setattr(poller, "read_metrics", fails_once)
    async with Talking(running=5) as engine, proxying(engine) as proxy, polling(proxy):
        await polled.wait()
        while proxy.plane.fleet.views[0].bs != 5:
            await asyncio.sleep(0.001)


async def test_an_engine_that_cannot_be_polled_keeps_its_last_report() -> None:
    async with Talking(running=3) as engine, proxying(engine) as proxy, polling(proxy):
        await engine.scrape()
        await engine.stop()
        await asyncio.sleep(0.05)
        assert proxy.plane.fleet.views[0].bs == 3
        assert next(iter(proxy.plane.fleet)).reconciled is not None


async def test_an_adapter_that_an_engine_loaded_is_routed_to_that_engine() -> None:
    async with Talking(model="m") as plain, Talking(model="my-lora") as adapted, proxying(plain, adapted) as proxy:
        assert (await proxy.post({**chat_body(), "model": "my-lora"})).status == 404
        async with polling(proxy):
            await plain.scrape()
            await adapted.scrape()
            for _ in range(3):
                answer = await proxy.post({**chat_body(), "model": "my-lora"})
                assert (answer.status, answer.fields["x-pointsman-instance"]) == (200, "e1")
            assert (await proxy.post({**chat_body(), "model": "other"})).status == 404


async def test_an_instance_without_configured_models_answers_to_any_name() -> None:
    async with Talking(model="a") as engine, proxying(engine, models=()) as proxy, polling(proxy):
        await engine.scrape()
        assert (await proxy.post({**chat_body(), "model": "whatever"})).status == 200


def test_resets_from_outside_are_counted_and_refused_ones_are_not() -> None:
    refused = 'http_requests_total{handler="/reset_prefix_cache",method="POST",status="4xx"} 7\n'
    other = 'http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 9\n'
    assert read_metrics((RESETS.format(2) + refused + other).encode()).cache_resets == 2
    assert read_metrics(other.encode()).cache_resets == 0


async def test_a_cache_that_was_reset_is_expected_to_hold_nothing() -> None:
    async with Talking() as engine, proxying(engine) as proxy, polling(proxy):
        await engine.scrape()
        await proxy.chat("x" * 1000)
        index = proxy.plane.fleet.index
        assert index.resident(0) > 0
        engine.resets = 1
        await engine.scrape()
        assert index.resident(0) == 0
        await proxy.chat("x" * 1000)
        await engine.scrape()
        assert index.resident(0) > 0, "once"


def test_only_what_stays_over_several_reports_is_drift() -> None:
    drift = Drift()
    for own, reported in ((5, 3), (4, 4), (9, 3), (8, 3)):
        drift.reported(own, reported)
    assert drift.requests == 0
    for _ in range(REPORTS):
        drift.reported(7, 4)
    assert drift.requests == 3
    drift.reported(7, None)
    assert drift.requests == 0


async def test_requests_that_an_engine_does_not_have_are_drift_and_show() -> None:
    async with Talking() as engine, proxying(engine) as proxy, polling(proxy):
        instance = next(iter(proxy.plane.fleet))
        instance.move(requests=2)
        for _ in range(REPORTS + 1):
            await engine.scrape()
        async with proxy.client() as client:
            text = (await client.get("/metrics")).body
        assert b'pointsman_instance_drift_requests{instance_name="e0"} 2' in text
        assert b'pointsman_instance_metrics_missing{instance_name="e0"} 1' in text
        instance.move(requests=-2)
