"""What passes through: the same bytes, end-to-end fields, and the decision in the answer's head."""

import asyncio
import json

import pytest

from tests.fakes.engine import (
    LAST_CHUNK,
    STREAM_HEAD,
    FakeEngine,
    Peer,
    Received,
    answers,
    answers_json,
    chunk,
    closes,
    http,
    streams,
)
from tests.router.proxy.harness import chat_body, document, proxying, request_bytes

EVENTS = [b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % i for i in range(5)] + [b"data: [DONE]\n\n"]


async def test_request_bytes_reach_the_engine_unchanged() -> None:
    body = b'{ "model":"m",\n "messages":[{"role":"user","content":"\\u00e9 \xc3\xa9"}] , "unknown": 1e3}'
    async with FakeEngine() as engine, proxying(engine) as proxy:
        answer = await proxy.post(body)
        assert answer.status == 200
        assert engine.requests[0].body == body
        assert engine.requests[0].path == "/v1/chat/completions"


async def test_end_to_end_fields_are_kept_and_hop_by_hop_ones_are_not() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        await proxy.post(
            chat_body(),
            Authorization="Bearer secret",
            X_Custom="a",
            traceparent="00-1-2-01",
            Connection="keep-alive, X-Hop",
            X_Hop="drop me",
            Keep_Alive="timeout=5",
            TE="trailers",
            Proxy_Authorization="x",
        )
        fields = engine.requests[0].fields
        assert fields["authorization"] == "Bearer secret"
        assert fields["x-custom"] == "a"
        assert fields["traceparent"] == "00-1-2-01"
        assert fields["host"] == f"127.0.0.1:{engine.port}"
        assert (
            not {"connection", "x-hop", "keep-alive", "te", "proxy-authorization", "transfer-encoding"} & fields.keys()
        )


async def test_the_query_and_a_path_prefix_of_the_engine_are_kept() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        given = document([engine], revision=2)
        instance = given.instances[0]
        proxy.plane.apply(
            type(given)(revision=2, instances=(type(instance)(id="p", name="p", url=f"{engine.url}/deploy/a/"),))
        )
        await proxy.post(chat_body(), path="/v1/chat/completions?api-version=1")
        assert engine.requests[0].path == "/deploy/a/v1/chat/completions?api-version=1"


async def test_a_request_id_is_made_or_kept_and_the_same_everywhere() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        made = await proxy.chat()
        kept = await proxy.post(chat_body(), X_Request_Id="abc-1")
        odd = await proxy.post(chat_body(), X_Request_Id="a b\tc")
        assert made.fields["x-pointsman-request-id"] == engine.requests[0].fields["x-request-id"]
        assert kept.fields["x-pointsman-request-id"] == engine.requests[1].fields["x-request-id"] == "abc-1"
        assert odd.fields["x-pointsman-request-id"] == engine.requests[2].fields["x-request-id"] != "a b\tc"
        assert len({made.fields["x-pointsman-request-id"], odd.fields["x-pointsman-request-id"]}) == 2


async def test_the_answer_says_where_and_why() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        answer = await proxy.chat("four")
        assert answer.fields["x-pointsman-instance"] == "e0"
        assert answer.fields["x-pointsman-attempts"] == "1"
        assert answer.fields["x-pointsman-policy"] == "default@1"
        assert float(answer.fields["x-pointsman-score"]) == proxy.plane.recent.newest().decision.score  # type: ignore[union-attr]


async def test_an_answer_with_a_length_keeps_it() -> None:
    given = answers(http("200 OK", b'{"x": 1}', fields="x-engine: 7\r\n"))
    async with FakeEngine(given) as engine, proxying(engine) as proxy:
        answer = await proxy.chat()
        assert answer.fields["content-length"] == "8"
        assert answer.fields["x-engine"] == "7"
        assert answer.body == b'{"x": 1}'


async def test_an_error_of_the_engine_passes_unchanged() -> None:
    body = b'{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}'
    async with FakeEngine(answers_json(body, "400 Bad Request")) as engine, proxying(engine) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.body) == (400, body)
        assert proxy.outcomes() == {"client_error": 1}


async def test_each_event_is_passed_on_before_the_next_is_sent() -> None:
    proceed = asyncio.Queue[None]()

    async def script(request: Received, peer: Peer) -> None:
        peer.send(STREAM_HEAD)
        for event in EVENTS:
            peer.send(chunk(event))
            await proceed.get()
        peer.send(LAST_CHUNK)

    async with FakeEngine(script) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
        head = await client.until(b"\r\n\r\n")
        assert b"text/event-stream" in head
        for event in EVENTS:
            assert await client.until(event + b"\r\n") == chunk(event)
            proceed.put_nowait(None)
        assert await client.until(LAST_CHUNK) == LAST_CHUNK


async def test_a_connection_serves_request_after_request() -> None:
    async with FakeEngine(streams(EVENTS)) as engine, proxying(engine) as proxy, proxy.client() as client:
        for _ in range(5):
            answer = await client.post(chat_body(stream=True))
            assert answer.body == b"".join(EVENTS)
        assert engine.opened == 1


async def test_a_body_that_ends_with_the_connection_is_framed_in_chunks() -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall there is"
    async with FakeEngine(closes(raw)) as engine, proxying(engine) as proxy:
        answer = await proxy.chat()
        assert answer.body == b"all there is"
        assert answer.fields["transfer-encoding"] == "chunked"


async def test_an_http_1_0_client_gets_plain_bytes_and_a_close() -> None:
    body = json.dumps(chat_body(stream=True)).encode()
    async with FakeEngine(streams(EVENTS)) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        raw = await client.rest()
        head, _, payload = raw.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower()
        assert b"connection: close" in head.lower()
        assert payload == b"".join(EVENTS)


async def test_interim_answers_are_dropped() -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + http("200 OK", b"{}")
    async with FakeEngine(answers(raw)) as engine, proxying(engine) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.body) == (200, b"{}")


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_answers_without_a_body_have_none(status: str) -> None:
    raw = f"HTTP/1.1 {status}\r\netag: x\r\n\r\n".encode()
    async with FakeEngine(answers(raw)) as engine, proxying(engine) as proxy, proxy.client() as client:
        for _ in range(2):
            answer = await client.post(chat_body())
            assert (answer.status, answer.body) == (int(status[:3]), b"")
            assert "transfer-encoding" not in answer.fields


async def test_a_large_body_passes_whole_both_ways() -> None:
    text = "é" * 3_000_000

    async def echo(request: Received, peer: Peer) -> None:
        peer.send(http("200 OK", request.body))

    async with FakeEngine(echo) as engine, proxying(engine) as proxy:
        body = json.dumps(chat_body(text), ensure_ascii=False).encode()
        answer = await proxy.post(body)
        assert answer.body == body


async def test_queued_prefill_is_released_at_the_first_token_and_bs_at_the_end() -> None:
    proceed = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        peer.send(STREAM_HEAD + chunk(b": keep-alive\n\n"))
        await proceed.wait()
        proceed.clear()
        peer.send(chunk(EVENTS[0]))
        await proceed.wait()
        peer.send(LAST_CHUNK)

    async with FakeEngine(script) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(request_bytes(json.dumps(chat_body("x" * 400, stream=True)).encode()))
        await client.until(b": keep-alive\n\n")
        waiting = proxy.counters
        assert (waiting["own_requests"], waiting["own_waiting"]) == (1, 1)
        assert waiting["queued_prefill_tokens"] == 102  # (400 + 6) bytes / 4
        proceed.set()
        await client.until(EVENTS[0])
        streaming = proxy.counters
        assert (streaming["own_requests"], streaming["own_waiting"], streaming["queued_prefill_tokens"]) == (1, 0, 0)
        proceed.set()
        await client.until(LAST_CHUNK)
        assert not any(proxy.counters.values())
