"""A router worker in front of real llama.cpp servers: what no simulated engine can prove."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.processes import eventually
from tests.engines.llama_cpp import MODEL, Served, chat_body, llama_cpp
from tests.patience import PATIENCE_S

pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install xllamacpp")

CHAT = "/v1/chat/completions"
LONG = " ".join(f"the engine holds the longest prefix of every prompt in block {n}" for n in range(60))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with llama_cpp(tmp_path_factory.mktemp("llama")) as found:
        yield found


def prompt_tokens(url: str, *texts: str) -> list[int]:
    """Return the tokens of a chat's prompt, as the engine itself has it."""
    prompt = httpx.post(f"{url}/apply-template", json=chat_body(*texts), timeout=PATIENCE_S).json()["prompt"]
    return tokens(url, prompt)


def tokens(url: str, text: str) -> list[int]:
    answer = httpx.post(f"{url}/tokenize", json={"content": text, "parse_special": True}, timeout=PATIENCE_S)
    found: list[int] = answer.json()["tokens"]
    return found


def common(one: list[int], other: list[int]) -> int:
    """Return how many leading tokens two prompts share."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_chat_is_answered_and_says_where(served: Served) -> None:
    answer = served.chat("which engine holds the prefix", max_tokens=6)
    assert answer.status_code == 200
    assert answer.headers["x-pointsman-instance"].startswith("llama-")
    assert answer.json()["usage"]["completion_tokens"] == 6
    assert answer.json()["usage"]["prompt_tokens"] == len(
        prompt_tokens(served.engine_of(answer), "which engine holds the prefix")
    )


def test_an_answer_has_the_very_bytes_of_the_engine(served: Served) -> None:
    body = chat_body("say the same twice", max_tokens=5, seed=1, cache_prompt=False)
    routed = httpx.post(f"{served.router}{CHAT}", json=body, timeout=PATIENCE_S)
    direct = httpx.post(f"{served.engine_of(routed)}{CHAT}", json=body, timeout=PATIENCE_S)
    assert routed.json()["choices"] == direct.json()["choices"]
    assert list(routed.json()) == list(direct.json())
    assert routed.headers["content-type"] == direct.headers["content-type"]
    assert routed.headers["server"] == direct.headers["server"]


def test_a_stream_brings_every_token_the_usage_and_the_end(served: Served) -> None:
    fields = {"max_tokens": 12, "seed": 1, "cache_prompt": False}
    answer = served.chat("go on", stream=True, stream_options={"include_usage": True}, **fields)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last = events_of(answer)
    choices = [event["choices"][0] for event in events]
    direct = httpx.post(f"{served.engine_of(answer)}{CHAT}", json=chat_body("go on", **fields), timeout=PATIENCE_S)
    whole = direct.json()
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text == whole["choices"][0]["message"]["content"]
    assert choices[-1]["finish_reason"] == "length"
    assert last["usage"]["completion_tokens"] == 12


def test_cached_tokens_are_those_that_two_prompts_share_to_the_token(served: Served) -> None:
    first = served.chat(LONG + " and the first queue")
    second = served.chat(LONG + " and the last answer")
    engine = served.engine_of(first)
    assert served.engine_of(second) == engine, "the prefix is there"
    shared = common(
        prompt_tokens(engine, LONG + " and the first queue"), prompt_tokens(engine, LONG + " and the last answer")
    )
    assert second.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == shared
    assert shared > 600


def test_the_router_counts_the_cached_tokens_that_engines_report(served: Served) -> None:
    name = 'pointsman_reported_hit_tokens_total{workload="default"}'
    before = served.series().get(name, 0)
    conversation = [LONG + " tell me more"]
    cached = 0
    for _ in range(4):
        answer = served.chat(*conversation, max_tokens=20)
        cached += answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        conversation += [answer.json()["choices"][0]["message"]["content"], "and then"]
    assert cached > 3 * 600
    assert served.series()[name] - before == cached


def test_a_conversation_stays_where_its_prefix_is(served: Served) -> None:
    conversation, visited = ["a conversation of its own " + LONG], []
    for _ in range(5):
        answer = served.chat(*conversation)
        visited.append(answer.headers["x-pointsman-instance"])
        conversation += [answer.json()["choices"][0]["message"]["content"], "next"]
    assert len(set(visited)) == 1


def test_a_connection_that_goes_stale_after_a_stream_costs_no_request(served: Served) -> None:
    """llama.cpp closes after a stream without saying so: what follows finds a dead connection in the pool."""
    with httpx.Client(base_url=served.router, timeout=PATIENCE_S) as client:
        for number in range(12):
            streamed = client.post(CHAT, json=chat_body(f"stream {number}", stream=True))
            whole = client.post(CHAT, json=chat_body(f"whole {number}"))
            assert streamed.text.endswith("data: [DONE]\n\n")
            assert (whole.status_code, whole.headers["x-pointsman-attempts"]) == (200, "1")
    assert not any("failures_total" in name and value for name, value in served.series().items())


def test_streams_at_once_all_come_whole(served: Served) -> None:
    def send(number: int) -> bool:
        answer = served.chat(f"request {number}", max_tokens=40, stream=True)
        return answer.status_code == 200 and answer.text.endswith("data: [DONE]\n\n")

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(send, range(48)))


def test_a_client_that_goes_away_stops_the_engine(served: Served) -> None:
    body = chat_body("never end", max_tokens=15_000, ignore_eos=True, stream=True)
    with httpx.stream("POST", f"{served.router}{CHAT}", json=body, timeout=PATIENCE_S) as answer:
        pieces = answer.iter_text()  # kept: without it the stream would be closed at once
        next(pieces)
        engine = served.engine_of(answer)
        eventually(lambda: served.series(engine)["llamacpp:requests_processing"] == 1, "the engine is at work", 2.0)
    # The whole answer would take the engine several seconds.
    eventually(lambda: served.series(engine)["llamacpp:requests_processing"] == 0, "the engine is idle", 2.0)
    eventually(lambda: served.series()["pointsman_in_flight"] == 0, "the router has nothing in flight", 2.0)


def test_what_a_client_did_wrong_comes_back_as_the_engine_said_it(served: Served) -> None:
    for body in (
        {"model": MODEL, "messages": "hello"},
        {"model": MODEL},
        chat_body("the " * 20_000),
        chat_body("the " * 20_000, stream=True),
    ):
        routed = httpx.post(f"{served.router}{CHAT}", json=body, timeout=PATIENCE_S)
        direct = httpx.post(f"{served.engines[0]}{CHAT}", json=body, timeout=PATIENCE_S)
        assert (routed.status_code, routed.json()) == (direct.status_code, direct.json())
        assert 400 <= routed.status_code < 500


def test_what_an_engine_does_not_do_at_all_is_held_against_nobody(served: Served) -> None:
    """The server runs without embeddings and says 501: that is no failure, however often it is asked for."""
    answers = [served.post("/v1/embeddings", model=MODEL, input="one") for _ in range(6)]
    assert {answer.status_code for answer in answers} == {501}
    assert answers[0].json()["error"]["type"] == "not_supported_error"
    assert served.chat("still there").status_code == 200
    assert not any("ejections_total" in name and value for name, value in served.series().items())


def test_a_model_that_nobody_serves_is_refused_by_the_router(served: Served) -> None:
    answer = served.chat("hello", model="another")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


def test_tokens_there_and_back(served: Served) -> None:
    text = "The router holds the longest prefix."
    found = served.post("/tokenize", model=MODEL, content=text).json()["tokens"]
    assert found == tokens(served.engines[0], text)
    assert served.post("/detokenize", model=MODEL, tokens=found).json()["content"] == text


def test_the_models_are_those_of_the_engines(served: Served) -> None:
    models = httpx.get(f"{served.router}/v1/models", timeout=PATIENCE_S).json()["data"]
    assert [model["id"] for model in models] == [MODEL]


def test_load_is_read_from_the_engines_metrics(served: Served) -> None:
    def is_known() -> bool:
        series = served.series()
        return all(f'pointsman_instance_report_age_seconds{{instance_name="llama-{n}"}}' in series for n in (0, 1))

    eventually(is_known, "both engines were read")
    body = chat_body("count me", max_tokens=15_000, ignore_eos=True, stream=True)
    with httpx.stream("POST", f"{served.engines[0]}{CHAT}", json=body, timeout=PATIENCE_S):
        bs = 'pointsman_instance_bs{instance_name="llama-0"}'
        eventually(lambda: served.series()[bs] == 1, "a request that went past the router is seen", 10)
    eventually(lambda: served.series()[bs] == 0, "and its end", 10)


def test_an_engine_that_dies_is_told_of_in_its_streams_and_the_other_takes_over(tmp_path: Path) -> None:
    with llama_cpp(tmp_path) as served:
        body = chat_body("until it dies", max_tokens=15_000, ignore_eos=True, stream=True)
        with httpx.stream("POST", f"{served.router}{CHAT}", json=body, timeout=PATIENCE_S) as answer:
            pieces = answer.iter_text()
            next(pieces)
            dead = answer.headers["x-pointsman-instance"]
            os.kill(served.pids[served.engines.index(served.engine_of(answer))], signal.SIGKILL)
            rest: list[str] = []
            with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
                rest.extend(pieces)
        assert '"error"' in "".join(rest).rpartition("data: ")[2]
        for number in range(6):
            after = served.chat(f"go on without it {number}")
            assert after.status_code == 200
            assert after.headers["x-pointsman-instance"] != dead
