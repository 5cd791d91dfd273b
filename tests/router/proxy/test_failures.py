"""Engines that fail: what is tried again, what is not, what clients are told, and what counts against whom."""

import asyncio
import json

import h11
import pytest

from router.core.policy import Policy
from router.proxy.breaker import BreakerRule, BreakerState
from router.proxy.limits import Limits
from router.proxy.retry_budget import RetryBudget
from router.proxy.wire.body import ChunkedDecoder
from tests.fakes.engine import (
    LAST_CHUNK,
    STREAM_HEAD,
    FakeEngine,
    Peer,
    Received,
    Script,
    answers,
    answers_json,
    chunk,
    closes,
    hangs,
    http,
    resets,
    streams,
)
from tests.router.proxy.harness import Proxy, chat_body, proxying, request_bytes

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
OVERLOADED = b'data: {"error": {"message": "busy", "type": "x", "param": null, "code": 503}}\n\n'
DONE = b"data: [DONE]\n\n"
FAILING: dict[str, Script] = {
    "reset before any byte": resets(),
    "close before any byte": closes(),
    "status 500": answers_json(b'{"error":{}}', "500 Internal Server Error"),
    "status 503": answers_json(b'{"error":{}}', "503 Service Unavailable"),
    "cut head": closes(b"HTTP/1.1 200 OK\r\ncontent-le"),
    "head alone, then reset": resets(STREAM_HEAD),
    "overload inside a 200 stream": streams([OVERLOADED, DONE]),
    "no HTTP": closes(b"SSH-2.0-x\r\n"),
    "two lengths": answers(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx"),
    "length and chunks": answers(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx"),
    "longer than it says": answers(http("200 OK", b"{}") + b"x"),
    "bad chunk size": answers(STREAM_HEAD + b"zz\r\n"),
}


def failing_first(proxy: Proxy, script: Script) -> None:
    """The next request fails wherever it goes first, and only there."""
    for engine in proxy.engines:
        engine.default = answers_json(b'{"ok":true}')
    chosen = {id(engine) for engine in proxy.engines}

    async def once(request: Received, peer: Peer) -> None:
        if chosen:
            chosen.clear()
            await script(request, peer)
        else:
            peer.send(http("200 OK", b'{"ok":true}'))

    for engine in proxy.engines:
        engine.default = once


@pytest.mark.parametrize("name", FAILING)
async def test_a_failure_before_the_first_byte_is_placed_elsewhere(name: str) -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        failing_first(proxy, FAILING[name])
        answer = await proxy.chat()
        assert (answer.status, answer.json) == (200, {"ok": True})
        assert answer.fields["x-pointsman-attempts"] == "2"
        assert len(one.requests) == len(two.requests) == 1
        assert one.requests[0].fields["x-request-id"] == two.requests[0].fields["x-request-id"]
        assert proxy.outcomes() == {"ok": 1}
        assert not any(proxy.counters.values())


async def test_a_refused_connection_is_placed_elsewhere_and_the_instance_ejected_at_once() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        await one.stop()
        for _ in range(10):
            answer = await proxy.chat()
            assert answer.status == 200
            assert answer.fields["x-pointsman-instance"] == "e1"
        breaker = proxy.plane.links[0].breaker
        assert (breaker.state, breaker.openings) == (BreakerState.OPEN, 1)
        assert len(two.requests) == 10


async def test_a_killed_engine_fails_no_later_request_and_comes_back_by_a_trial() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        for _ in range(4):
            await proxy.chat()
        await one.stop()
        assert [(await proxy.chat()).status for _ in range(20)] == [200] * 20
        await one.start()
        proxy.expire()
        assert proxy.plane.links[0].breaker.state is BreakerState.HALF_OPEN
        before = len(one.requests)
        assert [(await proxy.chat()).status for _ in range(10)] == [200] * 10
        assert proxy.plane.links[0].breaker.state is BreakerState.CLOSED
        assert len(one.requests) >= before + 4


async def test_a_dead_engine_is_tried_by_one_request_at_a_time() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        one.default = answers_json(b"{}", "500 Internal Server Error")
        while proxy.plane.links[0].breaker.state is not BreakerState.OPEN:
            await proxy.chat()
        proxy.expire()
        before = len(one.requests)
        one.default = hangs()
        async with proxy.client() as client:
            for _ in range(2):  # one of the two is the trial
                client.send(request_bytes(json.dumps(chat_body()).encode()))
                while proxy.plane.links[0].breaker.state is BreakerState.HALF_OPEN and proxy.plane.in_flight == 0:
                    await asyncio.sleep(0)
            answers_ = [await proxy.chat() for _ in range(6)]
        assert {a.fields["x-pointsman-instance"] for a in answers_} <= {"e0", "e1"}
        assert len(one.requests) - before <= 1
        await proxy.settle()


async def test_when_all_are_ejected_the_least_bad_is_used() -> None:
    rule = BreakerRule(failures=1, first_backoff_s=1e6)
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two, rule=rule) as proxy:
        for engine in (one, two):
            engine.default = answers_json(b"{}", "500 Internal Server Error")
        assert (await proxy.chat()).status == 500
        assert all(view.ejected for view in proxy.plane.fleet.views)
        for engine in (one, two):
            engine.default = answers_json(b"{}")
        assert (await proxy.chat()).status == 200


async def test_attempts_are_bounded_and_the_engines_own_error_is_passed_on() -> None:
    engines = [FakeEngine(answers_json(b'{"error":{"message":"mine"}}', "503 Service Unavailable")) for _ in range(5)]
    async with engines[0], engines[1], engines[2], engines[3], engines[4], proxying(*engines) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.json) == (503, {"error": {"message": "mine"}})
        assert answer.fields["x-pointsman-attempts"] == "3"
        assert sum(len(engine.requests) for engine in engines) == 3
        assert proxy.outcomes() == {"upstream_error": 1}
        assert not any(proxy.counters.values())


async def test_an_overloaded_stream_that_cannot_go_elsewhere_passes_unchanged_and_counts_as_failed() -> None:
    async with FakeEngine(streams([OVERLOADED, DONE])) as engine, proxying(engine) as proxy:
        answer = await proxy.chat(stream=True)
        assert (answer.status, answer.body) == (200, OVERLOADED + DONE)
        assert proxy.outcomes() == {"upstream_error": 1}
        assert proxy.plane.stats.totals.instance(f"id-{engine.port}").failures == {"in_stream": 1}


async def test_a_retry_that_finds_no_other_instance_leaves_the_decision_that_was_obeyed() -> None:
    async with FakeEngine(answers_json(b"{}", "503 Service Unavailable")) as engine, proxying(engine) as proxy:
        answer = await proxy.chat()
        assert answer.status == 503
        recent = proxy.plane.recent.find(answer.fields["x-pointsman-request-id"])
        assert recent is not None
        assert recent.decision.chosen is not None
        assert recent.decision.chosen.view.name == "e0"


async def test_a_retry_that_the_budget_does_not_pay_leaves_the_decision_that_was_obeyed() -> None:
    failing = answers_json(b"{}", "503 Service Unavailable")
    async with FakeEngine(failing) as one, FakeEngine(failing) as two, proxying(one, two) as proxy:
        while proxy.plane.budget.spend():
            pass
        answer = await proxy.chat()
        assert answer.fields["x-pointsman-attempts"] == "1"
        recent = proxy.plane.recent.find(answer.fields["x-pointsman-request-id"])
        assert recent is not None
        assert recent.decision.chosen is not None
        assert recent.decision.chosen.view.name == answer.fields["x-pointsman-instance"]


async def test_nothing_listening_anywhere_is_a_502_with_a_stable_code() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        await engine.stop()
        answer = await proxy.chat()
        assert (answer.status, answer.code) == (502, "upstream_failed")
        assert answer.fields["x-pointsman-attempts"] == "1"
        assert not any(proxy.counters.values())


@pytest.mark.parametrize("cut", [EVENT, EVENT[:20], EVENT[:-1]], ids=["whole event", "half event", "half gap"])
async def test_a_stream_that_breaks_ends_with_one_error_event_and_never_as_if_it_were_whole(cut: bytes) -> None:
    async with FakeEngine(resets(STREAM_HEAD + chunk(EVENT + cut))) as engine, proxying(engine) as proxy:
        async with proxy.client() as client:
            client.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
            raw = await client.rest()
        assert LAST_CHUNK not in raw
        body = ChunkedDecoder().feed(raw.partition(b"\r\n\r\n")[2])
        assert body.startswith(EVENT + cut)
        *_, last, end = body.split(b"\n\n")
        assert end == b""
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "upstream_failed"
        assert len(engine.requests) == 1
        assert proxy.outcomes() == {"broken": 1}
        assert not any(proxy.counters.values())


async def test_a_sized_answer_that_breaks_is_cut_off() -> None:
    script = resets(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")
    async with FakeEngine(script) as engine, proxying(engine) as proxy:
        with pytest.raises((h11.RemoteProtocolError, ConnectionResetError)):
            await proxy.chat()
        assert len(engine.requests) == 1
        assert not any(proxy.counters.values())


async def test_an_error_event_in_mid_stream_passes_and_counts() -> None:
    events = [EVENT, OVERLOADED, DONE]
    async with FakeEngine(streams(events)) as engine, proxying(engine) as proxy:
        answer = await proxy.chat(stream=True)
        assert answer.body == b"".join(events)
        assert proxy.outcomes() == {"upstream_error": 1}


async def test_a_stale_pooled_connection_is_replaced_at_the_same_instance() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        for _ in range(2):
            await proxy.chat()
        for engine in (one, two):
            engine.scripts = [closes()]  # what an engine's idle limit looks like when it races a request
        for _ in range(2):
            answer = await proxy.chat()
            assert answer.fields["x-pointsman-attempts"] == "1"
        assert (one.opened, two.opened) == (2, 2)
        assert all(link.breaker.failures == 0 for link in proxy.plane.links.values())


async def test_a_fresh_connection_that_fails_is_not_sent_again_to_the_same_instance() -> None:
    async with FakeEngine(closes()) as engine, proxying(engine) as proxy:
        assert (await proxy.chat()).status == 502
        assert len(engine.requests) == 1


@pytest.mark.parametrize("garbage", [b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
async def test_bytes_on_an_idle_connection_are_never_taken_for_an_answer(garbage: bytes) -> None:
    later = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        peer.send(http("200 OK", b'{"first":1}'))
        await later.wait()
        peer.send(garbage)
        await peer.gone.wait()

    async with FakeEngine(answers_json(b'{"second":2}')) as engine, proxying(engine) as proxy:
        engine.scripts = [script]
        assert (await proxy.chat()).json == {"first": 1}
        pool = proxy.plane.links[0].pool
        assert pool.idle_connections == 1
        later.set()
        while pool.open_connections:
            await asyncio.sleep(0)
        assert (await proxy.chat()).json == {"second": 2}


@pytest.mark.parametrize("first", [b"", STREAM_HEAD], ids=["silence", "head alone"])
async def test_no_first_byte_in_time_is_placed_elsewhere(first: bytes) -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        failing_first(proxy, hangs(first))
        asking = asyncio.create_task(proxy.chat())
        while not (one.requests or two.requests):
            await asyncio.sleep(0)
        proxy.expire()
        assert (await asking).fields["x-pointsman-attempts"] == "2"


async def test_no_first_byte_anywhere_is_a_504() -> None:
    async with FakeEngine(hangs()) as engine, proxying(engine) as proxy:
        asking = asyncio.create_task(proxy.chat())
        while not engine.requests:
            await asyncio.sleep(0)
        proxy.expire()
        answer = await asking
        assert (answer.status, answer.code) == (504, "upstream_timeout")
        await engine.all_closed.wait()
        assert not any(proxy.counters.values())


async def test_a_stream_that_stalls_ends_with_an_error_event() -> None:
    async with FakeEngine(hangs(STREAM_HEAD + chunk(EVENT))) as engine, proxying(engine) as proxy:
        async with proxy.client() as client:
            client.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
            await client.until(EVENT)
            proxy.expire()
            rest = await client.rest()
        assert b'"code":"upstream_timeout"' in rest
        await engine.all_closed.wait()


async def test_an_engine_that_cannot_be_reached_in_time_is_a_failure() -> None:
    limits = Limits(upstream_connect_s=0.0, drain_s=1.0)
    async with FakeEngine() as engine, proxying(engine, limits=limits) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.code) == (504, "upstream_timeout")


@pytest.mark.parametrize("status", ["400 Bad Request", "501 Not Implemented"])
async def test_what_a_client_did_wrong_never_counts_against_an_engine(status: str) -> None:
    async with FakeEngine(answers_json(b"{}", status)) as engine, proxying(engine) as proxy:
        for _ in range(20):
            assert (await proxy.chat()).status == int(status[:3])
        breaker = proxy.plane.links[0].breaker
        assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, 0)
        assert len(engine.requests) == 20


async def test_retries_of_overloaded_engines_stay_within_the_budget() -> None:
    busy = answers_json(b"{}", "503 Service Unavailable")
    rule = BreakerRule(failures=10**9)
    async with FakeEngine(busy) as one, FakeEngine(busy) as two, proxying(one, two, rule=rule) as proxy:
        assert proxy.plane.budget.retries_left > 0
        proxy.plane.budget = RetryBudget(reserve=0.0)  # which no time refills
        for _ in range(100):
            await proxy.chat()
        assert len(one.requests) + len(two.requests) == pytest.approx(100 + 10, abs=1)


async def test_a_removed_instance_gives_up_what_it_has_not_begun() -> None:
    async with FakeEngine(hangs()) as one, FakeEngine() as two, proxying(one) as proxy:
        asking = asyncio.create_task(proxy.chat())
        while not one.requests:
            await asyncio.sleep(0)
        proxy.apply([one, two])
        proxy.apply([two])
        answer = await asking
        assert (answer.status, answer.fields["x-pointsman-attempts"]) == (200, "2")
        await one.all_closed.wait()


async def test_a_removed_instance_finishes_what_it_has_begun() -> None:
    proceed = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        peer.send(STREAM_HEAD + chunk(EVENT))
        await proceed.wait()
        peer.send(chunk(DONE) + LAST_CHUNK)

    async with FakeEngine(script) as one, FakeEngine() as two, proxying(one) as proxy, proxy.client() as client:
        client.send(request_bytes(json.dumps(chat_body(stream=True)).encode()))
        await client.until(EVENT)
        proxy.apply([two])
        proceed.set()
        await client.until(DONE + b"\r\n" + LAST_CHUNK)
        await one.all_closed.wait()
        assert not any(proxy.counters.values())


@pytest.mark.parametrize("name", ["reset before any byte", "status 503"])
async def test_what_may_have_had_an_effect_is_not_sent_twice(name: str) -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        failing_first(proxy, FAILING[name])
        answer = await proxy.post({"model": "m", "lora_name": "x"}, path="/v1/load_lora_adapter")
        assert answer.status >= 500
        assert len(one.requests) + len(two.requests) == 1
        await one.stop()
        assert (await proxy.post({"model": "m"}, path="/v1/load_lora_adapter")).status == 200


async def test_a_policy_that_cannot_score_is_an_error_and_leaks_nothing() -> None:
    policy = Policy(name="default", normalize_hardware=True)
    async with FakeEngine() as engine, proxying(engine, policies=(policy,)) as proxy:
        answer = await proxy.chat()
        assert (answer.status, answer.code) == (500, "internal_error")
        assert proxy.outcomes() == {"crashed": 1}
        assert not any(proxy.counters.values())
        proxy.apply([engine])
        assert (await proxy.chat()).status == 200


async def test_a_renamed_instance_keeps_what_it_is_doing() -> None:
    async with FakeEngine(hangs()) as one, FakeEngine() as two, proxying(one) as proxy:
        asking = asyncio.create_task(proxy.chat())
        while not one.requests:
            await asyncio.sleep(0)
        proxy.apply([two, one])  # "e0" is "e1" from now on
        assert proxy.counters["own_requests"] == 1
        one.default = answers_json(b"{}")
        proxy.expire()
        answer = await asking
        assert (answer.fields["x-pointsman-instance"], answer.fields["x-pointsman-attempts"]) == ("e0", "2")
        assert len(two.requests) == 1
