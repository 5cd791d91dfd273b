"""What a client sees of a router worker over simulated engines: answers, decision headers, counters at rest."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.fleet import MODEL, Stack, stack
from tests.e2e.processes import eventually
from tests.patience import PATIENCE_S


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("stack"), engines=8, speedup=10) as started:
        yield started


def counters(stack: Stack) -> dict[str, float]:
    names = ("pointsman_instance_requests{", "pointsman_instance_queued_prefill_tokens{", "pointsman_in_flight")
    return {name: value for name, value in stack.metrics().items() if name.startswith(names)}


def test_a_chat_completion_says_where_it_went_and_why(running: Stack) -> None:
    answer = running.chat("Which way?", max_tokens=5)
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] == 5
    assert answer.headers["x-pointsman-instance"].startswith("gpu-")
    assert float(answer.headers["x-pointsman-score"]) >= 1
    assert answer.headers["x-pointsman-policy"] == "default@1"
    assert answer.headers["x-pointsman-attempts"] == "1"
    assert answer.headers["x-pointsman-request-id"]


def test_a_stream_arrives_token_by_token_and_ends_with_done(running: Stack) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Go"}], "max_tokens": 6, "stream": True}
    with httpx.stream("POST", f"{running.router}/v1/chat/completions", json=body, timeout=PATIENCE_S) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-pointsman-instance"].startswith("gpu-")
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    assert sum(bool(json.loads(x)["choices"][0]["delta"].get("content")) for x in lines[:-1]) == 6


def test_every_counter_is_zero_afterwards(running: Stack) -> None:
    running.chat("one more")
    eventually(lambda: all(value == 0 for value in counters(running).values()), "every counter is 0")
    assert len(counters(running)) >= 17
