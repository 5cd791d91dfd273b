"""The official clients work against the worker: every call, streams, tools, and errors as their own exceptions."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest

from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, chunk, hangs, http
from tests.router.proxy.harness import MODEL, Proxy, proxying

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
CHAT_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def chat_answer(body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "Hello there"}
    if body.get("tools"):
        call = {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop"}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE,
    }  # fmt: skip


def chat_events(body: dict[str, Any]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, {"content": "Hello"}, {"content": " thére"}]
    chunks = [{**CHAT_CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return [*chunks, {**CHAT_CHUNK, "choices": [], "usage": USAGE}]


def message_answer(body: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": "Hello there"}]
    if body.get("tools"):
        content = [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]
    return {
        "id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": content,
        "stop_reason": "tool_use" if body.get("tools") else "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 2},
    }  # fmt: skip


def message_events(body: dict[str, Any]) -> list[dict[str, Any]]:
    start = {**message_answer({}), "content": [], "stop_reason": None}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello thére"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]


def response_answer(body: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Hello there", "annotations": []}
    item = {"id": "o", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r", "object": "response", "created_at": 1, "model": MODEL, "status": "completed", "output": [item],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11,
                  "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
    }  # fmt: skip


def embedding_answer(body: dict[str, Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}]
    return {"object": "list", "model": MODEL, "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}}


def completion_answer(body: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "text": "Hello", "finish_reason": "stop", "logprobs": None}
    return {"id": "c", "object": "text_completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE}


ANSWERS = {
    "/v1/chat/completions": chat_answer,
    "/v1/completions": completion_answer,
    "/v1/embeddings": embedding_answer,
    "/v1/responses": response_answer,
    "/v1/messages": message_answer,
}
STREAMS = {"/v1/chat/completions": chat_events, "/v1/messages": message_events}


async def speak(request: Received, peer: Peer) -> None:
    """Answer as an engine does, streaming or not."""
    body = json.loads(request.body)
    path = request.path.partition("?")[0]
    if not body.get("stream"):
        peer.send(http("200 OK", json.dumps(ANSWERS[path](body)).encode()))
        return
    peer.send(STREAM_HEAD)
    for event in STREAMS[path](body):
        name = f"event: {event['type']}\n" if "type" in event else ""
        peer.send(chunk(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()))
        await asyncio.sleep(0)
    peer.send((chunk(b"data: [DONE]\n\n") if path.endswith("completions") else b"") + LAST_CHUNK)


@asynccontextmanager
async def talking(engine: FakeEngine) -> AsyncIterator[tuple[Proxy, openai.AsyncOpenAI, anthropic.AsyncAnthropic]]:
    """Run a worker before an engine, and both clients before the worker; neither tries anything twice."""
    async with engine, proxying(engine) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="EMPTY", max_retries=0) as one,
            anthropic.AsyncAnthropic(base_url=url, api_key="EMPTY", max_retries=0) as two,
        ):
            yield proxy, one, two


MESSAGES: Any = [{"role": "user", "content": "Hi"}]


async def test_openai_chat_streams_tools_and_the_rest() -> None:
    async with talking(FakeEngine(speak)) as (proxy, client, _):
        chat = await client.chat.completions.create(model=MODEL, messages=MESSAGES)
        assert chat.choices[0].message.content == "Hello there"
        stream = await client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        pieces = [piece async for piece in stream]
        assert "".join(p.choices[0].delta.content or "" for p in pieces if p.choices) == "Hello thére"
        assert pieces[-1].usage is not None
        tools: Any = [TOOL]
        called = await client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=tools)
        assert called.choices[0].message.tool_calls
        completion = await client.completions.create(model=MODEL, prompt="Hi")
        assert completion.choices[0].text == "Hello"
        embedded = await client.embeddings.create(model=MODEL, input="Hi", encoding_format="float")
        assert embedded.data[0].embedding == [0.5, -0.25]
        response = await client.responses.create(model=MODEL, input="Hi")
        assert response.output_text == "Hello there"
        assert [model.id async for model in client.models.list()] == [MODEL]
        assert proxy.outcomes() == {"ok": 6}
        assert not any(proxy.counters.values())


async def test_openai_headers_say_where_a_request_went() -> None:
    async with talking(FakeEngine(speak)) as (_, client, __):
        raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=MESSAGES)
        assert raw.headers["x-pointsman-instance"] == "e0"


async def test_anthropic_messages_streams_and_tools() -> None:
    async with talking(FakeEngine(speak)) as (proxy, _, client):
        message = await client.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES)
        assert message.content[0].text == "Hello there"  # type: ignore[union-attr]
        async with client.messages.stream(model=MODEL, max_tokens=9, messages=MESSAGES) as stream:
            assert "".join([text async for text in stream.text_stream]) == "Hello thére"
        tools: Any = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]
        called = await client.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES, tools=tools)
        assert called.stop_reason == "tool_use"
        assert proxy.outcomes() == {"ok": 3}


OPENAI_ERRORS = [
    (400, openai.BadRequestError),
    (401, openai.AuthenticationError),
    (404, openai.NotFoundError),
    (422, openai.UnprocessableEntityError),
    (429, openai.RateLimitError),
    (500, openai.InternalServerError),
    (503, openai.InternalServerError),
]


@pytest.mark.parametrize(("status", "kind"), OPENAI_ERRORS)
@pytest.mark.parametrize("stream", [False, True])
async def test_errors_of_engines_are_openais_exceptions(
    status: int, kind: type[openai.APIStatusError], stream: bool
) -> None:
    body = json.dumps({"error": {"message": "because", "type": "t", "param": None, "code": "c"}}).encode()

    async def fail(request: Received, peer: Peer) -> None:
        peer.send(http(f"{status} Because", body))

    async with talking(FakeEngine(fail)) as (_, client, __):
        with pytest.raises(kind, match="because") as raised:
            await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=stream)
        assert raised.value.code == "c"


async def test_our_own_errors_are_openais_exceptions() -> None:
    async with talking(FakeEngine(speak)) as (proxy, client, _):
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="nope", messages=MESSAGES)
        assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
        await proxy.engines[0].stop()
        with pytest.raises(openai.InternalServerError) as down:
            await client.chat.completions.create(model=MODEL, messages=MESSAGES)
        assert down.value.code == "upstream_failed"
        proxy.apply([])
        with pytest.raises(openai.InternalServerError) as nobody:
            await client.chat.completions.create(model=MODEL, messages=MESSAGES)
        assert nobody.value.code == "no_instance_available"


async def test_our_own_errors_are_anthropics_exceptions() -> None:
    async with talking(FakeEngine(speak)) as (proxy, _, client):
        with pytest.raises(anthropic.NotFoundError) as unknown:
            await client.messages.create(model="nope", max_tokens=9, messages=MESSAGES)
        assert unknown.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
        proxy.apply([])
        with pytest.raises(anthropic.APIStatusError) as nobody:
            await client.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES)
        assert nobody.value.body["error"]["type"] == "overloaded_error"  # type: ignore[index]


async def test_a_stream_that_breaks_is_an_exception_in_both_clients() -> None:
    async def breaks(request: Received, peer: Peer) -> None:
        events = STREAMS[request.path](json.loads(request.body))[:2]
        peer.send(STREAM_HEAD)
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            peer.send(chunk(f"{name}data: {json.dumps(event)}\n\n".encode()))
        await asyncio.sleep(0.01)
        peer.reset()

    async with talking(FakeEngine(breaks)) as (_, one, two):
        with pytest.raises(openai.APIError, match="reset"):
            await read_chat(one)
        with pytest.raises(anthropic.APIError, match="reset"):
            await read_messages(two)


async def read_chat(client: openai.AsyncOpenAI) -> None:
    async for _piece in await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True):
        pass


async def read_messages(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(model=MODEL, max_tokens=9, messages=MESSAGES) as messages:
        async for _text in messages.text_stream:
            pass


async def test_a_client_that_breaks_off_its_stream_stops_the_engine() -> None:
    first = STREAM_HEAD + chunk(b"data: %b\n\n" % json.dumps(chat_events({})[1]).encode())
    engine = FakeEngine(hangs(first))
    async with talking(engine) as (proxy, client, _):
        stream = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
        async for _piece in stream:
            break
        await stream.close()
        await engine.all_closed.wait()
        await proxy.settle()
        assert proxy.outcomes() == {"cancelled": 1}
