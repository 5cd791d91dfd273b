"""Data-parallel ranks of one engine are instances of their own: pinned, counted, followed and predicted one by one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import orjson
import pytest

from router.config import ConfigDocument, ConfigError, InstanceConfig, KvEventsConfig, dump_config, parse_config
from router.engine.instance import EngineInstance
from router.proxy.engine_metrics import read_metrics
from router.proxy.events.following import EventFollower
from router.proxy.events.sources import find_sources
from router.proxy.fetch import Fetched
from router.proxy.poller import LoadPoller
from router.proxy.worker import SystemClock
from router.snapshot import Residency
from tests.router.engine.serving import HOST, call, until
from tests.router.proxy.events.stage import engine
from tests.router.proxy.harness import MODEL, Proxy, proxying
from tests.shared_material import shared_path

LONG = {"model": MODEL, "messages": [{"role": "user", "content": "once upon a time " * 60}], "max_tokens": 4}


def ranks_of(port: int, count: int = 2) -> tuple[InstanceConfig, ...]:
    return tuple(
        InstanceConfig(id=f"id#{rank}", name=f"e#{rank}", url=f"http://{HOST}:{port}", models=(MODEL,), rank=rank)
        for rank in range(count)
    )


@asynccontextmanager
async def routed(one: EngineInstance) -> AsyncIterator[tuple[Proxy, EventFollower]]:
    """Run a data plane that routes to the two ranks of an engine and follows both."""
    async with proxying() as proxy:
        proxy.plane.apply(ConfigDocument(revision=2, instances=ranks_of(one.port)))
        follower = EventFollower(proxy.plane, SystemClock())
        tasks = [
            asyncio.create_task(follower.run()),
            asyncio.create_task(LoadPoller(proxy.plane, Random(1), every_s=0.05).run()),
        ]
        try:
            links = list(proxy.plane.links.values())
            await until(lambda: all(follower.standing(link).residency is Residency.EVENTS for link in links))
            yield proxy, follower
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_conversation_stays_on_the_rank_that_holds_it_and_the_prediction_is_what_it_reports() -> None:
    async with engine(ranks=2) as one, routed(one) as (proxy, follower):
        first = await proxy.post(LONG)
        place = first.fields["x-pointsman-instance"]
        await follower.learner.drained()
        await until(lambda: proxy.plane.fleet.events.blocks > 0)
        for _ in range(3):
            again = await proxy.post(LONG)
            assert again.fields["x-pointsman-instance"] == place
            newest = proxy.plane.recent.newest()
            assert newest is not None
            assert newest.decision.chosen is not None
            assert newest.decision.chosen.exact
            assert (
                newest.decision.chosen.hit_tokens == again.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
            )
        served = [rank.counters.generation_tokens for rank in one.ranks]
        assert served[int(place[-1])] == 16
        assert sum(served) == 16


async def test_other_prompts_spread_over_the_ranks_and_each_counts_its_own() -> None:
    async with engine(ranks=2) as one, routed(one) as (proxy, _):
        for number in range(6):
            await proxy.post({**LONG, "messages": [{"role": "user", "content": f"{number} " * 400}]})
        assert [rank.counters.generation_tokens for rank in one.ranks] == [12, 12]
        await call(one.port, "POST", "/v1/chat/completions", LONG, "X-data-parallel-rank: 1\r\n")
        reports = [instance.reconciled for instance in proxy.plane.fleet]
        assert all(reconciled is not None and reconciled.report.kv_capacity_tokens == 4096 for reconciled in reports)


async def test_a_client_cannot_pin_a_rank_that_was_not_chosen() -> None:
    async with engine(ranks=2) as one, routed(one) as (proxy, _):
        answer = await proxy.post(LONG, **{"X-Data-Parallel-Rank": "7"})
        assert answer.status == 200


def test_the_series_of_one_rank_are_read_alone() -> None:
    text = b"\n".join(
        b'vllm:num_requests_running{engine="%d",model_name="m"} %d.0\nvllm:num_requests_waiting{engine="%d"} 1.0\n'
        b'vllm:kv_cache_usage_perc{engine="%d"} 0.%d\nvllm:cache_config_info{block_size="16",engine="%d",'
        b'num_gpu_blocks="%d00"} 1.0' % (rank, rank + 2, rank, rank, rank + 4, rank, rank + 1)
        for rank in range(2)
    )
    for rank in range(2):
        report = read_metrics(text, rank).report
        assert (report.running, report.waiting, report.kv_use) == (rank + 2, 1, pytest.approx((rank + 4) / 10))
        assert report.kv_capacity_tokens == (rank + 1) * 1600
    sglang = b'sglang:num_running_reqs{dp_rank="0"} 3\nsglang:num_running_reqs{dp_rank="1"} 4\n'
    assert read_metrics(sglang, 1).report.running == 4


@pytest.mark.parametrize("rank", [0, 1])
def test_a_recorded_engine_of_two_ranks_tells_each_by_itself(rank: int) -> None:
    text = shared_path("samples/metrics-dp2.txt").read_bytes()
    one, both = read_metrics(text, rank), read_metrics(text)
    assert one.missing == ()
    assert one.report.kv_capacity_tokens == 32 * 1024
    assert one.served_tokens is not None
    assert both.served_tokens is not None
    assert one.served_tokens <= both.served_tokens


async def test_configured_endpoints_are_those_of_rank_0_and_the_others_count_up() -> None:
    async def silent(path: bytes) -> Fetched:
        return Fetched(404, {}, b"")

    events = KvEventsConfig(endpoint="tcp://h:5000", replay="tcp://h:6000")
    config = InstanceConfig(id="i#2", name="n#2", url="http://h:1", rank=2, kv_events=events)
    (source,) = (await find_sources(silent, config)).events
    assert (source.events, source.replay, source.rank) == ("tcp://h:5002", "tcp://h:6002", 2)


async def test_a_rank_of_which_the_engine_does_not_tell_is_estimated_with_the_reason() -> None:
    async def two_ranks(path: bytes) -> Fetched:
        told = {rank: {"endpoint": f"tcp://h:{5000 + int(rank)}", "replay_endpoint": None} for rank in "01"}
        return Fetched(200 if path == b"/kv_event_sources" else 404, {}, orjson.dumps(told))

    config = InstanceConfig(id="i#5", name="n#5", url="http://h:1", rank=5)
    found = await find_sources(two_ranks, config)
    assert found.events == ()
    assert "rank 5" in found.reason


def test_a_rank_that_cannot_be_is_refused() -> None:
    document = ConfigDocument(revision=1, instances=(InstanceConfig(id="a", name="a", url="http://h:1", rank=-1),))
    with pytest.raises(ConfigError, match="rank -1"):
        parse_config(dump_config(document))
