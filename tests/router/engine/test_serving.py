"""What a client of the simulated engine meets beyond well-formed single requests."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import orjson
import pytest

from router.engine.chat_template import render_chat
from router.engine.clock import LoopClock
from router.engine.errors import ConfigurationError
from router.engine.instance import EngineInstance
from router.engine.models import ServedModels
from router.engine.options import EngineOptions
from router.engine.tokens import count_of
from tests.fakes.step_clock import GatedClock, VirtualClock
from tests.router.engine.serving import HOST, call, chat, exchange, options, parse, request, serving, until

CHAT = "/v1/chat/completions"


async def test_the_same_prompt_gets_the_same_text_whichever_engine_answers() -> None:
    texts = set()
    for seed in (1, 2):
        async with serving(hash_seed=seed) as engine:
            answer = await call(engine.port, "POST", CHAT, chat("hi", max_tokens=12))
            texts.add(answer.json["choices"][0]["message"]["content"])
    assert len(texts) == 1


async def test_a_stream_and_a_whole_answer_say_the_same() -> None:
    async with serving() as engine:
        whole = await call(engine.port, "POST", CHAT, chat("hi", max_tokens=9))
        stream = await call(engine.port, "POST", CHAT, chat("hi", max_tokens=9, stream=True))
    streamed = "".join(chunk["choices"][0]["delta"]["content"] for chunk in stream.chunks)
    assert streamed == whole.json["choices"][0]["message"]["content"]


async def test_without_max_tokens_the_model_stops_by_itself() -> None:
    async with serving() as engine:
        answer = await call(engine.port, "POST", CHAT, chat("hi"))
        longer = await call(engine.port, "POST", CHAT, chat("hi", min_tokens=700))
        completion = await call(engine.port, "POST", "/v1/completions", {"model": "tiny", "prompt": "hi"})
    assert answer.json["choices"][0]["finish_reason"] == "stop"
    assert longer.json["usage"]["completion_tokens"] == 700
    assert completion.json["usage"]["completion_tokens"] == 16


async def test_a_conversation_is_found_in_the_cache_with_its_answers() -> None:
    async with serving() as engine:
        messages = [{"role": "system", "content": "s" * 400}, {"role": "user", "content": "q" * 200}]
        first = await call(engine.port, "POST", CHAT, {"model": "tiny", "messages": messages, "max_tokens": 64})
        text = first.json["choices"][0]["message"]["content"]
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "and?"}]
        second = await call(engine.port, "POST", CHAT, {"model": "tiny", "messages": messages, "max_tokens": 1})
    before = first.json["usage"]["total_tokens"]
    cached = second.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert before - 16 <= cached <= before


async def test_adapters_and_salts_share_no_cache() -> None:
    models = ServedModels(("tiny",), ("lora-a",), 8192)
    async with serving(models=models) as engine:
        cached = []
        for extra in ({}, {}, {"model": "lora-a"}, {"cache_salt": "x"}, {"cache_salt": "x"}):
            answer = await call(engine.port, "POST", CHAT, chat("p" * 800, max_tokens=1) | extra)
            cached.append(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])
        listed = (await call(engine.port, "GET", "/v1/models")).json["data"]
    assert [count > 0 for count in cached] == [False, True, False, False, True]
    assert {model["id"]: model["parent"] for model in listed} == {"tiny": None, "lora-a": "tiny"}


async def test_several_choices_and_prompts_come_in_one_answer() -> None:
    async with serving() as engine:
        body = {"model": "tiny", "prompt": ["hello", "world"], "max_tokens": 3, "n": 2}
        whole = await call(engine.port, "POST", "/v1/completions", body)
        stream = await call(engine.port, "POST", "/v1/completions", body | {"stream": True})
    texts = [choice["text"] for choice in whole.json["choices"]]
    assert [choice["index"] for choice in whole.json["choices"]] == [0, 1, 2, 3]
    assert len(set(texts)) == 4
    assert whole.json["usage"]["completion_tokens"] == 12
    streamed = dict.fromkeys(range(4), "")
    for chunk in stream.chunks:
        streamed[chunk["choices"][0]["index"]] += chunk["choices"][0]["text"]
    assert list(streamed.values()) == texts


async def test_tokenize_and_detokenize_are_inverse() -> None:
    async with serving() as engine:
        text = "naïve – 日本語 ok"
        tokens = (await call(engine.port, "POST", "/tokenize", {"prompt": text})).json
        back = (await call(engine.port, "POST", "/detokenize", {"tokens": tokens["tokens"]})).json
        rendered = (await call(engine.port, "POST", "/tokenize", chat("hi"))).json
    assert back == {"prompt": text}
    assert tokens["count"] == -(-len(text.encode()) // 4)
    assert rendered["count"] == count_of(render_chat([{"role": "user", "content": "hi"}]))


async def test_one_connection_serves_many_requests_also_pipelined() -> None:
    async with serving() as engine:
        reader, writer = await asyncio.open_connection(HOST, engine.port)
        one = request("POST", CHAT, chat("hi", max_tokens=2), close=False)
        writer.write(one + one + request("GET", "/version"))
        raw = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert raw.count(b"HTTP/1.1 200 OK") == 3
    assert raw.endswith(b'{"version":"0.32.0"}')


async def test_a_body_may_come_in_chunks_and_wait_for_leave() -> None:
    body = orjson.dumps(chat("hi", max_tokens=1))
    head = f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\nconnection: close\r\n"
    chunked = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (10, body[:10], len(body) - 10, body[10:])
    async with serving() as engine:
        reader, writer = await asyncio.open_connection(HOST, engine.port)
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(chunked)
        assert parse(await reader.read()).status == 200
        writer.close()
        await writer.wait_closed()


async def test_what_is_not_http_is_refused() -> None:
    async with serving() as engine:
        reader, writer = await asyncio.open_connection(HOST, engine.port)
        writer.write(b"hello there\r\n\r\n")
        answer = parse(await reader.read())
        writer.close()
        await writer.wait_closed()
    assert (answer.status, answer.body) == (400, b"Invalid HTTP request received.")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("half_close", [True, False])
async def test_a_client_that_leaves_ends_its_request(stream: bool, half_close: bool) -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        _, writer = await asyncio.open_connection(HOST, engine.port)
        writer.write(request("POST", CHAT, chat("hi", max_tokens=1000, stream=stream)))
        await until(lambda: engine.model.running == 1)
        clock.allow(3)
        await until(lambda: engine.counters.generation_tokens == 3)
        if half_close:
            writer.write_eof()
        else:
            writer.transport.abort()
        clock.open()
        await until(lambda: engine.model.running == 0)
        assert engine.counters.generation_tokens < 1000
        engine.model.check_integrity()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_stopping_ends_streams_with_the_reason_abort() -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        reader, writer = await asyncio.open_connection(HOST, engine.port)
        writer.write(request("POST", CHAT, chat("hi", max_tokens=1000, stream=True), close=False))
        await until(lambda: engine.model.running == 1)
        clock.allow(4)
        await until(lambda: engine.counters.generation_tokens == 4)
        await engine.stop()
        answer = parse(await reader.read())
        writer.close()
        await writer.wait_closed()
    assert answer.events[-1] == b"[DONE]"
    assert answer.chunks[-1]["choices"][0]["finish_reason"] == "abort"


class Closable(asyncio.Transport):
    closed = False

    def close(self) -> None:
        self.closed = True


async def test_who_was_accepted_in_the_moment_in_which_it_stopped_is_not_served() -> None:
    async with serving() as engine:
        early, late = Closable(), Closable()
        engine._connection().connection_made(early)
        assert not early.closed
        accepted = engine._connection()
    accepted.connection_made(late)
    assert early.closed
    assert late.closed


async def test_with_a_shutdown_timeout_running_streams_finish_and_new_requests_fail() -> None:
    clock = GatedClock()
    async with serving(clock, shutdown_timeout_s=600.0) as engine:
        running = asyncio.create_task(call(engine.port, "POST", CHAT, chat("hi", max_tokens=20, stream=True)))
        await until(lambda: engine.model.running == 1)
        stop = asyncio.create_task(engine.stop())
        await until(lambda: engine.stopping)
        health = await call(engine.port, "GET", "/health")
        refused = await call(engine.port, "POST", CHAT, chat("hi"))
        clock.open()
        await stop
        answer = await running
    assert health.status == 200
    assert (refused.status, refused.json["error"]["message"]) == (500, "cannot schedule new futures after shutdown")
    assert answer.chunks[-1]["choices"][0]["finish_reason"] == "length"


async def test_a_full_queue_refuses_with_503_also_inside_a_stream() -> None:
    clock = GatedClock()
    async with serving(clock, max_queued=1) as engine:
        first = asyncio.create_task(call(engine.port, "POST", CHAT, chat("one", max_tokens=50)))
        await until(lambda: engine.model.running == 1)
        second = asyncio.create_task(call(engine.port, "POST", CHAT, chat("two", max_tokens=50)))
        await until(lambda: engine.model.waiting == 1)
        whole = await call(engine.port, "POST", CHAT, chat("three"))
        stream = await call(engine.port, "POST", CHAT, chat("three", stream=True))
        clock.open()
        await asyncio.gather(first, second)
    assert (whole.status, whole.json["error"]["code"]) == (503, 503)
    assert (stream.status, stream.chunks[0]["error"]["code"], stream.events[-1]) == (200, 503, b"[DONE]")


async def test_a_dead_engine_ends_streams_with_an_error_event_and_is_unhealthy() -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        stream = asyncio.create_task(call(engine.port, "POST", CHAT, chat("hi", max_tokens=100, stream=True)))
        whole = asyncio.create_task(call(engine.port, "POST", CHAT, chat("hi", max_tokens=100)))
        await until(lambda: engine.model.running + engine.model.waiting == 2)
        engine.fail()
        clock.open()
        assert (await stream).chunks[-1]["error"]["code"] == 500
        assert (await whole).status == 500
        assert (await call(engine.port, "GET", "/health")).status == 503
        assert (await call(engine.port, "POST", CHAT, chat("hi"))).status == 500


async def test_a_key_is_required_on_v1_only() -> None:
    async with serving(api_key="secret") as engine:
        refused = await call(engine.port, "POST", CHAT, chat("hi"))
        allowed = await call(engine.port, "GET", "/v1/models", headers="authorization: Bearer secret\r\n")
        health = await call(engine.port, "GET", "/health")
    assert (refused.status, refused.body) == (401, b'{"error":"Unauthorized"}')
    assert (allowed.status, health.status) == (200, 200)


async def test_an_engine_that_starts_is_not_ready() -> None:
    clock = VirtualClock()
    async with serving(clock, start_delay_s=30.0) as engine:
        before = await call(engine.port, "GET", "/health")
        clock.now_s += 31
        after = await call(engine.port, "GET", "/health")
    assert (before.status, after.status) == (503, 200)


async def test_resetting_the_cache_forgets_every_prefix() -> None:
    async with serving() as engine:
        await call(engine.port, "POST", CHAT, chat("p" * 800, max_tokens=1))
        reset = await call(engine.port, "POST", "/reset_prefix_cache")
        answer = await call(engine.port, "POST", CHAT, chat("p" * 800, max_tokens=1))
    assert (reset.status, reset.json) == (200, {"success": True})
    assert answer.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


async def test_a_cache_in_use_is_not_reset() -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        running = asyncio.create_task(call(engine.port, "POST", CHAT, chat("hi", max_tokens=5)))
        await until(lambda: engine.model.running == 1)
        assert (await call(engine.port, "POST", "/reset_prefix_cache")).json == {"success": False}
        clock.open()
        assert (await running).status == 200


async def test_a_taken_port_is_an_error_not_a_surprise() -> None:
    async with serving() as engine:
        other = EngineInstance(options(), LoopClock())
        with pytest.raises(OSError, match="in use"):
            await other.start(HOST, engine.port)


@pytest.mark.parametrize(
    "changes", [{"speedup": 0.0}, {"models": ServedModels(("tiny",), (), 1_000_000)}], ids=["speed", "context"]
)
def test_options_that_cannot_be_served_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        options(**changes)


def test_two_engines_hash_differently() -> None:
    one, two = (EngineOptions(options().profile, options().models) for _ in range(2))
    assert one.hash_seed != two.hash_seed


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_completion_tokens": 5}, 5),
        ({"max_completion_tokens": 5, "max_tokens": 9}, 5),
        ({"max_tokens": 9, "ignore_eos": True, "stop": ["the"]}, 9),
        ({"max_tokens": "7"}, 7),
    ],
)
async def test_the_number_of_tokens_is_the_one_asked_for(fields: dict[str, Any], expected: int) -> None:
    async with serving() as engine:
        answer = await call(engine.port, "POST", CHAT, chat("hi", **fields))
    assert answer.json["usage"]["completion_tokens"] == expected
    assert answer.json["choices"][0]["finish_reason"] == "length"


async def test_two_requests_with_one_id_both_run() -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        twins = [
            asyncio.create_task(call(engine.port, "POST", CHAT, chat("hi", max_tokens=3), "X-Request-Id: same\r\n"))
            for _ in range(2)
        ]
        await until(lambda: engine.model.running + engine.model.waiting == 2)
        clock.open()
        answers = await asyncio.gather(*twins)
    assert [answer.json["id"] for answer in answers] == ["chatcmpl-same"] * 2


async def test_an_http_1_0_client_gets_a_stream_that_ends_with_the_connection() -> None:
    raw = request("POST", CHAT, chat("hi", max_tokens=3, stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0")
    async with serving() as engine:
        answer = parse(await exchange(engine.port, raw))
    assert "transfer-encoding" not in answer.headers
    assert (len(answer.chunks), answer.events[-1]) == (4, b"[DONE]")


async def test_token_ids_of_prompt_and_answer_are_returned_when_asked_for() -> None:
    async with serving() as engine:
        body = chat("hi", max_tokens=3, return_token_ids=True)
        whole = (await call(engine.port, "POST", CHAT, body)).json
        stream = (await call(engine.port, "POST", CHAT, body | {"stream": True})).chunks
        prompt = (await call(engine.port, "POST", "/tokenize", chat("hi"))).json["tokens"]
        text = (await call(engine.port, "POST", "/detokenize", {"tokens": whole["choices"][0]["token_ids"]})).json
    assert whole["prompt_token_ids"] == stream[0]["prompt_token_ids"] == prompt
    assert text["prompt"] == whole["choices"][0]["message"]["content"]
    streamed = [token for chunk in stream[1:] for token in chunk["choices"][0]["token_ids"]]
    assert streamed == whole["choices"][0]["token_ids"]


async def test_a_stream_that_waits_gets_comments_before_its_first_chunk() -> None:
    clock = GatedClock()
    async with serving(clock, keep_alive_s=0.01) as engine:
        reader, writer = await asyncio.open_connection(HOST, engine.port)
        writer.write(request("POST", CHAT, chat("hi", max_tokens=2, stream=True)))
        head = await reader.readuntil(b"\r\n\r\n")
        comment = await reader.readuntil(b"\n\n\r\n")
        clock.open()
        rest = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert comment == b"e\r\n: keep-alive\n\n\r\n"
    events = parse(head + comment + rest).events
    assert events[0] == b": keep-alive"
    assert events[-1] == b"[DONE]"


async def test_clients_that_leave_at_any_moment_leave_nothing_behind() -> None:
    rng = random.Random(7)
    async with serving(ranks=2) as engine:

        async def client(number: int) -> None:
            reader, writer = await asyncio.open_connection(HOST, engine.port)
            body = chat(f"{number % 7}" * 400, max_tokens=60, stream=number % 2 == 0)
            sent = rng.choice([None, None, 40, 200])
            writer.write(request("POST", CHAT, body)[:sent])
            for _ in range(rng.randrange(12)):
                await asyncio.sleep(0)
            if sent is None and rng.random() < 0.5:
                await reader.read(rng.randrange(1, 2000))
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

        for batch in range(20):
            await asyncio.gather(*(client(20 * batch + n) for n in range(20) if rng.random() < 0.8 or n % 2))
        await until(lambda: all(rank.model.running + rank.model.waiting == 0 for rank in engine.ranks))
        for rank in engine.ranks:
            assert rank.stepper.idle
            rank.model.check_integrity()
        assert (await call(engine.port, "POST", CHAT, chat("still there", max_tokens=2))).status == 200
