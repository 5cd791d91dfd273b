"""The exposition has vLLM's names, labels and buckets, and its numbers are those of the engine."""

from prometheus_client.parser import text_string_to_metric_families

from router.engine.metrics import EngineCounters
from tests.router.engine.serving import call, chat, serving
from tests.shared_material import shared_path

OURS_ALONE = {"pointsman:engine_lag_seconds"}
BUCKETS_OF_THE_CONTEXT = {"vllm:request_prompt_tokens", "vllm:request_generation_tokens"}
"""vLLM derives these buckets from the longest context."""


async def exposition() -> str:
    async with serving() as engine:
        await call(engine.port, "POST", "/v1/chat/completions", chat("p" * 800, max_tokens=5))
        await call(engine.port, "POST", "/v1/chat/completions", chat("p" * 800, max_tokens=5, stream=True))
        answer = await call(engine.port, "GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"
    return answer.body.decode()


async def test_every_metric_is_one_of_vllms_with_the_same_labels_and_buckets() -> None:
    theirs = {
        family.name: family
        for family in text_string_to_metric_families(shared_path("samples/metrics-vllm-0.32.0.txt").read_text())
    }
    for family in text_string_to_metric_families(await exposition()):
        if family.name in OURS_ALONE:
            continue
        other = theirs[family.name]
        assert (family.type, family.documentation) == (other.type, other.documentation)
        names = {sample.name for sample in family.samples}
        labels = {label for sample in family.samples for label in sample.labels}
        assert names <= {sample.name for sample in other.samples}
        assert labels <= {label for sample in other.samples for label in sample.labels}
        if family.type == "histogram" and family.name not in BUCKETS_OF_THE_CONTEXT:
            bounds = [sample.labels["le"] for sample in family.samples if "le" in sample.labels]
            assert bounds == [sample.labels["le"] for sample in other.samples if "le" in sample.labels]


async def test_numbers_follow_the_requests() -> None:
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(await exposition())
        for sample in family.samples
        if "le" not in sample.labels and "finished_reason" not in sample.labels
    }
    assert values["vllm:prompt_tokens_total"] == values["vllm:prefix_cache_queries_total"] == 2 * 203
    assert values["vllm:prefix_cache_hits_total"] == 192
    assert values["vllm:generation_tokens_total"] == 10
    assert values["vllm:time_to_first_token_seconds_count"] == 2
    assert values["vllm:inter_token_latency_seconds_count"] == 8
    assert values["vllm:num_requests_running"] == values["vllm:num_requests_waiting"] == 0


def test_a_histogram_puts_a_value_on_a_bound_into_that_bucket() -> None:
    histogram = EngineCounters().ttft_s
    histogram.observe(0.001)
    histogram.observe(10_000.0)
    lines = list(histogram.samples("x", 'engine="0"', 'model_name="m"'))
    assert lines[0] == 'x_bucket{engine="0",le="0.001",model_name="m"} 1.0'
    assert lines[-3:] == [
        'x_bucket{engine="0",le="+Inf",model_name="m"} 2.0',
        'x_count{engine="0",model_name="m"} 2.0',
        'x_sum{engine="0",model_name="m"} 10000.001',
    ]
