"""What engines say about themselves, read from their own pages."""

import json

import pytest

from controlplane.fleet.engine_facts import UnreadableFacts, read_event_endpoints, read_metrics, read_models
from tests.shared_material import shared_path

VLLM = (
    'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1024"} 1.0\n'
    "process_start_time_seconds 1.79602471719e+09\n"
)


def test_vllm_tells_block_size_capacity_and_start() -> None:
    facts = read_metrics(VLLM)
    assert (facts.engine, facts.kv_block_tokens, facts.kv_capacity_tokens) == ("vllm", 16, 16_384)
    assert facts.process_started_unix_s == 1796024717.19


def test_blocks_that_are_not_known_yet_are_not_a_number() -> None:
    text = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n'
    assert read_metrics(text).kv_capacity_tokens is None


@pytest.mark.parametrize(
    "labels", ['num_gpu_blocks="4000000000"', 'num_gpu_blocks="2000000000"', 'kv_cache_size_tokens="1e300"']
)
def test_a_capacity_beyond_belief_is_not_believed(labels: str) -> None:
    text = f'vllm:cache_config_info{{block_size="16",{labels}}} 1.0\n'
    assert read_metrics(text).kv_capacity_tokens is None


@pytest.mark.parametrize(
    ("file", "engine", "block", "capacity"),
    [
        ("metrics-vllm-0.28.0.txt", "vllm", 16, 16_384),
        ("metrics-vllm-0.32.0.txt", "vllm", 32, 32_768),
        ("metrics-sglang-0.5.23.txt", "sglang", None, 16_384),
        ("metrics-llamacpp.txt", None, None, None),
    ],
)
def test_recorded_metrics_of_real_engines(file: str, engine: str, block: int, capacity: int) -> None:
    facts = read_metrics(shared_path(f"samples/{file}").read_text())
    assert (facts.engine, facts.kv_block_tokens, facts.kv_capacity_tokens) == (engine, block, capacity)


def test_the_ranks_of_a_data_parallel_engine_are_counted() -> None:
    assert read_metrics(shared_path("samples/metrics-dp2.txt").read_text()).ranks == 2
    assert read_metrics(shared_path("samples/metrics-vllm-0.32.0.txt").read_text()).ranks == 1
    sglang = "\n".join(f'sglang:num_running_reqs{{dp_rank="{rank}",tp_rank="0"}} 0.0' for rank in (0, 1, 2))
    assert read_metrics(sglang).ranks == 3


def test_a_server_of_one_rank_of_many_is_no_engine_of_ranks() -> None:
    assert read_metrics('vllm:num_requests_running{engine="3",model_name="m"} 0.0\n').ranks is None


def test_models_and_adapters_are_listed_once() -> None:
    body = json.dumps({"data": [{"id": "base"}, {"id": "lora", "parent": "base"}, {"id": "base"}]}).encode()
    assert read_models(body) == ("base", "lora")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": []}', b'{"data": [{"id": 7}]}', b"<html>", b"[" * 9999])
def test_a_page_that_is_no_model_list_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableFacts):
        read_models(body)


def test_event_endpoints_are_found_wherever_they_stand() -> None:
    page = {"sources": [{"endpoint": "tcp://10.0.0.7:5557", "replay": "tcp://10.0.0.7:5558", "rank": 0}], "x": "y"}
    assert read_event_endpoints(json.dumps(page).encode()) == ("tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558")
