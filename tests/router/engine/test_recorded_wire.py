"""Answers have the bytes of a recorded vLLM 0.32 wherever the model does not decide them, and its shape elsewhere."""

from typing import Any

import pytest

from tests.router.engine.serving import Answer, exchange, parse, serving
from tests.shared_material import shared_path

EXACT = (
    "err_404path",
    "err_405",
    "err_badjson",
    "err_badtype",
    "err_embeddings",
    "err_empty_prompt",
    "err_model404",
    "err_model404_compl",
    "err_negmax",
    "err_nomessages",
    "err_stream_opts",
    "err_temp",
    "err_toolong",
    "err_toolong_compl_tokens",
    "err_toolong_max",
    "err_toolong_stream",
    "compl_batch",
    "health",
    "load",
    "lora_load",
    "ping",
    "tokenizer_info",
    "version",
)
SAME_SHAPE = ("chat", "compl", "compl_tokens", "models", "no_model_field", "tokenize_chat", "detokenize")
STREAMS = ("chat_stream", "chat_stream_usage", "chat_stream_cont_usage", "chat_stream_tokids", "compl_stream")
OF_THE_MODEL = {"content-length", "date"}


async def answers(name: str) -> tuple[Answer, Answer]:
    """Return (what was recorded, what the simulated engine says) for a recorded request."""
    raw = shared_path(f"samples/wire/{name}.req").read_bytes()
    recorded = parse(shared_path(f"samples/wire/{name}.resp").read_bytes())
    async with serving() as engine:
        return recorded, parse(await exchange(engine.port, raw))


def shape(value: Any) -> Any:
    """Keys in order and types, without the values."""
    if isinstance(value, dict):
        return [(key, shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def same_head(recorded: Answer, answer: Answer) -> None:
    assert answer.head.split(b"\r\n")[0] == recorded.head.split(b"\r\n")[0]
    assert list(answer.headers) == list(recorded.headers)
    for name in answer.headers.keys() - OF_THE_MODEL:
        assert answer.headers[name] == recorded.headers[name]


@pytest.mark.parametrize("name", EXACT)
async def test_what_no_model_decides_is_byte_identical(name: str) -> None:
    recorded, answer = await answers(name)
    same_head(recorded, answer)
    assert answer.body == recorded.body


@pytest.mark.parametrize("name", SAME_SHAPE)
async def test_whole_answers_have_the_same_keys_in_the_same_order(name: str) -> None:
    recorded, answer = await answers(name)
    same_head(recorded, answer)
    assert shape(answer.json) == shape(recorded.json)


@pytest.mark.parametrize("name", STREAMS)
async def test_streams_have_the_same_chunks(name: str) -> None:
    recorded, answer = await answers(name)
    same_head(recorded, answer)
    assert [shape(chunk) for chunk in answer.chunks] == [shape(chunk) for chunk in recorded.chunks]
    assert [_reasons(chunk) for chunk in answer.chunks] == [_reasons(chunk) for chunk in recorded.chunks]
    assert answer.events[-1] == recorded.events[-1] == b"[DONE]"


async def test_a_request_id_becomes_the_body_id() -> None:
    recorded, answer = await answers("chat")
    assert answer.json["id"] == recorded.json["id"] == "chatcmpl-router-abc-123"


def _reasons(chunk: dict[str, Any]) -> list[str | None]:
    return [choice["finish_reason"] for choice in chunk["choices"]]
