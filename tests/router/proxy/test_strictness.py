"""Raw bytes on the client's side: what could be read in two ways is refused, and nothing of it reaches an engine."""

import asyncio
import json

import pytest

from router.proxy.client import _Wait
from router.proxy.limits import Limits
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, answers_json, chunk, hangs
from tests.router.engine.serving import until
from tests.router.proxy.harness import CHAT, Proxy, chat_body, proxying, request_bytes

BODY = json.dumps(chat_body()).encode()
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
HOST = b"Host: x\r\n"
START = b"POST /v1/chat/completions HTTP/1.1\r\n"
SMUGGLED = b"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n"

BAD = {
    "two lengths": (START + HOST + LENGTH + b"Content-Length: 5\r\n\r\n" + BODY, 400),
    "two equal lengths": (START + HOST + LENGTH + LENGTH + b"\r\n" + BODY, 400),
    "a list of lengths": (START + HOST + b"Content-Length: 5, 5\r\n\r\nhello", 400),
    "a signed length": (START + HOST + b"Content-Length: +5\r\n\r\nhello", 400),
    "a negative length": (START + HOST + b"Content-Length: -5\r\n\r\nhello", 400),
    "a hexadecimal length": (START + HOST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    "an empty length": (START + HOST + b"Content-Length: \r\n\r\nhello", 400),
    "an endless length": (START + HOST + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    "length and coding": (START + HOST + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
    "coding and length": (START + HOST + b"Transfer-Encoding: chunked\r\n" + LENGTH + b"\r\n0\r\n\r\n" + SMUGGLED, 400),
    "two codings": (START + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400),
    "an unknown coding": (START + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "a masked coding": (START + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    "a coding with a tab": (START + HOST + b"Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n", 400),
    "a space before the colon": (START + HOST + b"Content-Length : 5\r\n\r\nhello", 400),
    "a folded field": (START + HOST + b"X-A: b\r\n c\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a folded first field": (START + b" X-A: b\r\n" + HOST + LENGTH + b"\r\n" + BODY, 400),
    "bare line feeds": (b"POST /v1/chat/completions HTTP/1.1\nHost: x\nContent-Length: 0\n\n", 400),
    "one bare line feed": (START + HOST + b"X-A: b\n" + LENGTH + b"\r\n" + BODY, 400),
    "a bare carriage return": (START + HOST + b"X-A: b\rX-B: c\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a NUL in a value": (START + HOST + b"X-A: b\0c\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a control in a value": (START + HOST + b"X-A: b\x01c\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "no colon": (START + HOST + b"X-A\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "an empty name": (START + HOST + b": b\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a bad name": (START + HOST + b"X(A): b\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "no host": (START + LENGTH + b"\r\n" + BODY, 400),
    "two hosts": (START + HOST + b"Host: y\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a host with a path": (START + b"Host: x/../y\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "another protocol": (b"POST /v1/chat/completions HTTP/2.0\r\n" + HOST + b"\r\n", 400),
    "no protocol": (b"POST /v1/chat/completions\r\n" + HOST + b"\r\n", 400),
    "two spaces": (b"POST  /v1/chat/completions HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a lower-case method": (b"post /v1/chat/completions HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an unknown method": (b"BREW /v1/chat/completions HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "a tunnel": (b"CONNECT x:1 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an absolute target": (b"POST http://y/v1/chat/completions HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a coding in HTTP/1.0": (b"POST /v1/models HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "an unknown expectation": (START + HOST + b"Expect: magic\r\n" + LENGTH + b"\r\n" + BODY, 417),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
    "a head that is too large": (START + HOST + b"X-A: " + b"a" * 40_000, 431),
    "too many fields": (START + HOST + b"".join(b"X-%d: 1\r\n" % i for i in range(200)) + LENGTH + b"\r\n" + BODY, 431),
    "a body that is too large": (START + HOST + b"Content-Length: 70000000\r\n\r\n", 413),
    "a bad chunk size": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "a signed chunk size": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", 400),
    "a spaced chunk size": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400),
    "a huge chunk size": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n1ffffffff\r\n", 400),
    "a chunk ended by a line feed": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", 400),
    "a chunk that is longer": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", 400),
    "a chunk extension without end": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"a" * 5000, 400),
    "a trailer without end": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: " + b"a" * 20_000, 400),
    "a length in a trailer": (
        START + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\ncontent-Length: 3\r\n\r\n",
        400,
    ),
    "a coding in a trailer": (
        START + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding:x\r\n\r\n",
        400,
    ),
    "a malformed trailer": (START + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n bad\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("by_byte", [False, True], ids=["at once", "byte by byte"])
async def test_what_could_be_read_in_two_ways_is_refused(name: str, by_byte: bool) -> None:
    raw, status = BAD[name]
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        if by_byte and len(raw) < 1000:
            for i in range(len(raw)):
                client.send(raw[i : i + 1])
                await asyncio.sleep(0)
        else:
            client.send(raw)
        answer = await client.answer()
        assert answer.status == status
        assert answer.code
        assert answer.fields["connection"] == "close"
        assert await client.rest() == b""
        assert engine.requests == []
        while proxy.plane.open_clients:
            client.writer.close()
            await asyncio.sleep(0)
        assert not any(proxy.counters.values())


async def test_a_chunked_request_reaches_the_engine_with_a_length() -> None:
    raw = START + HOST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    raw += b"%x;name=value\r\n%b\r\n" % (10, BODY[:10]) + chunk(BODY[10:]) + b"0\r\nX-Trailer: dropped\r\n\r\n"
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        for i in range(0, len(raw), 7):
            client.send(raw[i : i + 7])
            await asyncio.sleep(0)
        assert (await client.answer()).status == 200
        assert engine.requests[0].body == BODY
        assert engine.requests[0].fields["content-length"] == str(len(BODY))


async def test_pipelined_requests_are_served_in_order() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        bodies = [json.dumps(chat_body(f"number {i}")).encode() for i in range(5)]
        client.send(b"".join(map(request_bytes, bodies)) + b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        raw = b""
        while b"ok\n" not in raw:
            raw += await client.reader.read(65536)
        assert raw.count(b"HTTP/1.1 200 OK") == 6
        assert [request.body for request in engine.requests] == bodies


async def begun(proxy: Proxy) -> None:
    """Wait until the router has read some of a request, and waits for the rest."""
    await until(lambda: any(client._wait in {_Wait.HEAD, _Wait.BODY} for client in proxy.server._clients))


async def test_a_client_that_pipelines_without_end_is_closed_after_its_answer() -> None:
    limits = Limits(max_pipelined_bytes=2000, drain_s=1.0)
    async with FakeEngine(hangs()) as engine, proxying(engine, limits=limits) as proxy, proxy.client() as client:
        client.send(request_bytes(BODY))
        while not engine.requests:
            await asyncio.sleep(0)
        client.send(request_bytes(BODY) * 100)
        await until(lambda: any(other._overflowed for other in proxy.server._clients))
        proxy.expire()
        answer = await client.answer()
        assert (answer.status, answer.fields["connection"]) == (504, "close")
        assert len(engine.requests) == 1


async def test_an_expectation_is_met_before_the_body_is_sent() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(START + HOST + LENGTH + b"Expect: 100-continue\r\n\r\n")
        assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(BODY)
        assert (await client.answer()).status == 200
        assert "expect" not in engine.requests[0].fields


async def test_an_expectation_of_a_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(START + HOST + b"Content-Length: 70000000\r\nExpect: 100-continue\r\n\r\n")
        answer = await client.answer()
        assert (answer.status, answer.code) == (413, "body_too_large")


async def test_a_body_that_grows_too_large_in_chunks_is_refused() -> None:
    limits = Limits(max_body_bytes=10_000, drain_s=1.0)
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy, proxy.client() as client:
        client.send(START + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"x" * 6000) * 2)
        assert (await client.answer()).status == 413
        assert not any(proxy.counters.values())


async def test_more_body_bytes_than_may_be_held_are_refused() -> None:
    limits = Limits(max_buffered_bytes=1000, drain_s=1.0)
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy:
        answer = await proxy.chat("x" * 2000)
        assert (answer.status, answer.code) == (503, "out_of_memory")
        assert (await proxy.chat("x")).status == 200
        assert not any(proxy.counters.values())


@pytest.mark.parametrize(
    ("sent", "code"),
    [(START + b"Hos", "request_timeout"), (START + HOST + LENGTH + b"\r\n{", "request_timeout")],
    ids=["in the head", "in the body"],
)
async def test_a_request_that_never_ends_is_told_so(sent: bytes, code: str) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(sent)
        await begun(proxy)
        proxy.expire()
        answer = await client.answer()
        assert (answer.status, answer.code) == (408, code)
        assert await client.rest() == b""


async def test_bytes_that_trickle_do_not_move_the_limit_of_a_head() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(b"P")
        await begun(proxy)
        late_s = proxy.plane.loop.time() + proxy.plane.limits.client_head_s
        for byte in b"OST /v1":
            client.send(bytes([byte]))
            await asyncio.sleep(0.002)
        proxy.plane.sweep(late_s)
        assert (await client.answer()).status == 408


async def test_an_idle_connection_is_closed_without_a_word() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        await client.get("/livez")
        proxy.expire()
        assert await client.rest() == b""


async def test_a_client_that_stops_reading_stops_its_engine_and_is_closed_in_time() -> None:
    sent = 0

    async def script(request: Received, peer: Peer) -> None:
        nonlocal sent
        peer.send(STREAM_HEAD)
        while not peer.gone.is_set() and sent < 200_000_000:
            if peer.buffered < 1_000_000:
                peer.send(chunk(b"data: " + b"x" * 100_000 + b"\n\n"))
                sent += 100_000
            await asyncio.sleep(0)

    async with FakeEngine(script) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.writer.transport.pause_reading()
        client.send(request_bytes(BODY))
        seen = -1
        while seen != sent or sent == 0:
            seen = sent
            await asyncio.sleep(0.1)
        assert sent < 50_000_000
        assert proxy.plane.in_flight == 1
        proxy.expire()
        await engine.all_closed.wait()
        await proxy.settle()
        assert not any(proxy.counters.values())


async def test_a_slow_reader_gets_every_byte() -> None:
    payload = [b"data: %d " % i + b"x" * 5000 + b"\n\n" for i in range(2000)]

    async def script(request: Received, peer: Peer) -> None:
        await peer.send_slices([STREAM_HEAD, *map(chunk, payload), LAST_CHUNK])

    async with FakeEngine(script) as engine, proxying(engine) as proxy, proxy.client() as client:
        client.writer.transport.pause_reading()
        client.send(request_bytes(BODY))
        await asyncio.sleep(0.3)
        client.writer.transport.resume_reading()
        assert (await client.answer()).body == b"".join(payload)


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        ("/nowhere", "POST", 404, "unknown_path"),
        ("/v1/../admin", "POST", 404, "unknown_path"),
        ("/v1/%2e%2e/admin", "POST", 404, "unknown_path"),
        ("/v1//x", "POST", 404, "unknown_path"),
        ("/metrics", "POST", 404, "unknown_path"),
        ("/tokenize", "GET", 405, "method_not_allowed"),
    ],
)
async def test_other_paths_and_methods_are_refused_and_the_connection_goes_on(
    path: str, method: str, status: int, code: str
) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        client.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        answer = await client.answer(method)
        assert (answer.status, answer.code) == (status, code)
        assert (await client.get("/livez")).status == 200
        assert engine.requests == []


async def test_an_answer_to_head_has_no_body() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        for path, status in (("/livez", b"200"), ("/nowhere", b"404"), ("/v1/x", b"405")):
            client.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await client.until(b"\r\n\r\n")).split(b" ")[1] == status
        assert (await client.get("/livez")).body == b"ok\n"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"[]", "invalid_json"),
        (b'{"model": 7}', "invalid_model"),
        (b'{"model": "m", "messages": [{"content": "\xff"}]}', "invalid_json"),
        (b"", "invalid_json"),
    ],
)
async def test_a_body_that_cannot_be_routed_is_a_400(body: bytes, code: str) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy, proxy.client() as client:
        answer = await client.post(body, CHAT)
        assert (answer.status, answer.code) == (400, code)
        assert (await client.post(chat_body())).status == 200
        assert len(engine.requests) == 1


async def test_a_model_that_nobody_serves_is_a_404_as_openai_says_it() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        answer = await proxy.post({**chat_body(), "model": "other"})
        assert answer.status == 404
        assert answer.json["error"] == {
            "message": "The model `other` does not exist.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
        assert engine.requests == []


async def test_no_instance_in_rotation_is_a_503_with_the_reason_of_each() -> None:
    async with FakeEngine() as engine, proxying(engine, state="draining") as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.code) == (503, "no_instance_available")
        assert "e0: state is draining" in answer.json["error"]["message"]
        assert answer.fields["retry-after"] == "1"
        proxy.apply([])
        assert "none is registered" in (await proxy.chat()).json["error"]["message"]


async def test_a_request_without_a_model_goes_to_the_only_one_there_is() -> None:
    async with FakeEngine(answers_json(b"{}")) as engine, proxying(engine) as proxy:
        assert (await proxy.post({"messages": []})).status == 200
        proxy.apply([engine], models=("a", "b"))
        answer = await proxy.post({"messages": []})
        assert (answer.status, answer.code) == (400, "missing_model")
