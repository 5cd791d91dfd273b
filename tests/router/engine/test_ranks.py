"""Data-parallel ranks: pinned by a header, each with its own cache, metrics and events."""

from prometheus_client.parser import text_string_to_metric_families

from router.engine.kv_publisher import EventEndpoints
from router.kvevents.discovery import VLLM_PATH, discover
from router.kvevents.source import EventSource
from tests.ports import free_ports
from tests.router.engine.serving import HOST, call, chat, serving

CHAT = "/v1/chat/completions"


def pinned(rank: int) -> str:
    return f"X-data-parallel-rank: {rank}\r\n"


async def test_a_pinned_request_runs_on_its_rank_and_caches_there_only() -> None:
    async with serving(ranks=2) as engine:
        cached = []
        for rank in (1, 1, 0):
            answer = await call(engine.port, "POST", CHAT, chat("p" * 800, max_tokens=1), pinned(rank))
            cached.append(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert [rank.counters.generation_tokens for rank in engine.ranks] == [1, 2]
    assert [count > 0 for count in cached] == [False, True, False]


async def test_a_rank_that_is_not_there_is_refused() -> None:
    async with serving(ranks=2) as engine:
        for rank in (2, -1):
            assert (await call(engine.port, "POST", CHAT, chat("p"), pinned(rank))).status == 400


async def test_requests_without_a_pin_are_shared_by_the_ranks() -> None:
    async with serving(ranks=4) as engine:
        for number in range(20):
            await call(engine.port, "POST", CHAT, chat(f"{number}", max_tokens=1))
        assert [rank.counters.generation_tokens for rank in engine.ranks] == [5, 5, 5, 5]


async def test_metrics_tell_ranks_apart() -> None:
    async with serving(ranks=2) as engine:
        await call(engine.port, "POST", CHAT, chat("p", max_tokens=7), pinned(1))
        text = (await call(engine.port, "GET", "/metrics")).body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    by_rank = {sample.labels["engine"]: sample.value for sample in families["vllm:generation_tokens"].samples}
    assert by_rank == {"0": 0.0, "1": 7.0}
    assert len(families["vllm:cache_config_info"].samples) == 2


async def test_every_rank_has_its_own_event_sources() -> None:
    first = free_ports(4)
    endpoints = EventEndpoints(f"tcp://{HOST}:{first}", f"tcp://{HOST}:{first + 2}", "kv")
    async with serving(ranks=2, events=endpoints) as engine:
        answer = await call(engine.port, "GET", VLLM_PATH)
    assert discover({VLLM_PATH: (200, answer.body)}, f"http://{HOST}:1") == [
        EventSource(f"tcp://{HOST}:{first + rank}", f"tcp://{HOST}:{first + 2 + rank}", "kv", rank) for rank in range(2)
    ]
