"""One address is enough to find an engine's event sources, in vLLM's words and in SGLang's."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.kvevents.discovery import SGLANG_PATH, VLLM_PATH, discover, ranked, reachable
from router.kvevents.errors import DiscoveryError
from router.kvevents.source import EventSource

URL = "http://10.1.2.3:8000"
VLLM = {
    "data_parallel_rank": 0,
    "endpoint": "tcp://*:5557",
    "replay_endpoint": "tcp://127.0.0.1:5558",
    "topic": "kv",
    "future": 1,
}
SGLANG = {
    "publisher": "zmq",
    "endpoint_host": "*",
    "endpoint_port_base": 5557,
    "topic": "",
    "block_size": 16,
    "dp_size": 2,
}


def found(path: str, body: Any, status: int = 200) -> list[EventSource]:
    return discover({path: (status, json.dumps(body).encode())}, URL)


@pytest.mark.parametrize("body", [[VLLM], {"sources": [VLLM]}, {"0": VLLM}])
def test_vllm_lists_its_sources_in_any_shape(body: Any) -> None:
    assert found(VLLM_PATH, body) == [EventSource("tcp://10.1.2.3:5557", "tcp://127.0.0.1:5558", "kv")]


def test_a_recorded_answer_of_vllm_0_32_is_read() -> None:
    recorded = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": "tcp://127.0.0.1:39409",
        "replay_endpoint": "tcp://127.0.0.1:19111",
        "buffer_steps": 10000,
        "hwm": 100000,
        "max_queue_size": 100000,
        "topic": "kv@127.0.0.1:18110@tiny",
    }
    other = recorded | {"endpoint": "tcp://127.0.0.1:39410", "replay_endpoint": "tcp://127.0.0.1:19112"}
    topic = "kv@127.0.0.1:18110@tiny"
    assert found(VLLM_PATH, {"1": other, "0": recorded}) == [
        EventSource("tcp://127.0.0.1:39409", "tcp://127.0.0.1:19111", topic, 0),
        EventSource("tcp://127.0.0.1:39410", "tcp://127.0.0.1:19112", topic, 1),
    ]


def test_ranks_come_in_order() -> None:
    body = [VLLM | {"data_parallel_rank": 1, "endpoint": "tcp://h:2", "replay_endpoint": None}, VLLM]
    assert [(source.rank, source.replay) for source in found(VLLM_PATH, body)] == [
        (0, "tcp://127.0.0.1:5558"),
        (1, None),
    ]


@pytest.mark.parametrize("config", ['{"replay_endpoint":"tcp://*:6000"}', {"replay_endpoint": "tcp://*:6000"}])
def test_sglang_describes_one_port_a_rank(config: Any) -> None:
    sources = found(SGLANG_PATH, {"kv_events": SGLANG, "kv_events_config": config, "model_path": "m"})
    assert sources == [
        EventSource("tcp://10.1.2.3:5557", "tcp://10.1.2.3:6000", "", 0, block_tokens=16),
        EventSource("tcp://10.1.2.3:5558", "tcp://10.1.2.3:6001", "", 1, block_tokens=16),
    ]


@pytest.mark.parametrize("info", [{}, {"kv_events": None}, {"kv_events": SGLANG | {"publisher": "null"}}])
def test_an_sglang_without_events_has_no_sources(info: Any) -> None:
    assert found(SGLANG_PATH, info) == []


def test_an_engine_that_knows_neither_path_has_no_sources() -> None:
    assert found(VLLM_PATH, {"detail": "Not Found"}, status=404) == []
    assert discover({}, URL) == []


def test_vllm_with_no_source_leaves_the_word_to_sglang() -> None:
    answers = {VLLM_PATH: (200, b"[]"), SGLANG_PATH: (200, json.dumps({"kv_events": SGLANG}).encode())}
    assert len(discover(answers, URL)) == 2


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("tcp://*:1", "tcp://10.1.2.3:1"),
        ("tcp://0.0.0.0:1", "tcp://10.1.2.3:1"),
        ("tcp://[::]:1", "tcp://10.1.2.3:1"),
        ("tcp://:::1", "tcp://10.1.2.3:1"),
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"),
        ("tcp://[fe80::1]:1", "tcp://[fe80::1]:1"),
    ],
)
def test_wildcards_become_the_host_that_was_asked(endpoint: str, address: str) -> None:
    assert reachable(endpoint, URL) == address


def test_an_ipv6_host_is_bracketed() -> None:
    assert reachable("tcp://*:1", "http://[2001:db8::1]:8000") == "tcp://[2001:db8::1]:1"


@pytest.mark.parametrize("endpoint", ["ipc:///tmp/x", "tcp://h", "tcp://h:port", "", "tcp://*:0", "tcp://h:70000"])
def test_what_nobody_else_could_reach_is_refused(endpoint: str) -> None:
    with pytest.raises(DiscoveryError):
        reachable(endpoint, URL)


@pytest.mark.parametrize("ranks", [0, -1, 5000, 60_000])
def test_an_impossible_number_of_ranks_is_refused(ranks: int) -> None:
    with pytest.raises(DiscoveryError):
        ranked(EventSource("tcp://h:65000"), ranks)


@pytest.mark.parametrize("path", [VLLM_PATH, SGLANG_PATH])
@given(
    st.binary(max_size=60) | st.sampled_from([b"[", b"7", b'{"sources":3}', b'{"kv_events":3}', b'[{"endpoint":1}]'])
)
def test_random_answers_are_sources_or_refused(path: str, body: bytes) -> None:
    with contextlib.suppress(DiscoveryError):
        discover({path: (200, body)}, URL)
