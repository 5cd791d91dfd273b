"""Traces: one span a request, under the client's, above the engine's, without a word of the prompt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from router.proxy.tracing import OtelTracer
from tests.fakes.engine import FakeEngine, answers_json, hangs
from tests.router.proxy.harness import Proxy, chat_body, proxying

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
USAGE = b'{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}}'


@asynccontextmanager
async def traced(engine: FakeEngine) -> AsyncIterator[tuple[Proxy, InMemorySpanExporter]]:
    exporter = InMemorySpanExporter()
    tracer = OtelTracer(SimpleSpanProcessor(exporter), "router-3")
    async with engine, proxying(engine) as proxy:
        proxy.plane.tracer = tracer
        yield proxy, exporter
    tracer.close()


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


async def test_a_span_says_where_a_request_went_and_what_it_used() -> None:
    async with traced(FakeEngine(answers_json(USAGE))) as (proxy, exporter):
        await proxy.post(chat_body("secret words"), traceparent=PARENT, tracestate="a=b")
        span = only(exporter)
        attributes = dict(span.attributes or {})
        assert span.name == "chat m"
        assert attributes["gen_ai.operation.name"] == "chat"
        assert attributes["gen_ai.usage.input_tokens"] == 10
        assert attributes["gen_ai.usage.output_tokens"] == 5
        assert attributes["gen_ai.usage.cache_read.input_tokens"] == 8
        assert attributes["pointsman.instance"] == "e0"
        assert attributes["pointsman.attempts"] == 1
        assert attributes["http.response.status_code"] == 200
        assert span.status.is_ok
        assert span.resource.attributes["service.instance.id"] == "router-3"
        assert "secret" not in span.to_json()


async def test_the_engine_hangs_its_spans_below_ours_and_ours_below_the_clients() -> None:
    async with traced(FakeEngine()) as (proxy, exporter):
        await proxy.post(chat_body(), traceparent=PARENT, tracestate="a=b")
        span = only(exporter)
        assert span.context is not None
        assert span.parent is not None
        assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
        assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
        request = proxy.engines[0].requests[0]
        assert request.fields["traceparent"] == f"00-{PARENT.split('-')[1]}-{span.context.span_id:016x}-01"
        assert request.fields["tracestate"] == "a=b"
        assert request.head.lower().count(b"traceparent:") == 1


async def test_failures_and_clients_that_leave_end_their_spans_too() -> None:
    async with traced(FakeEngine(answers_json(b"{}", "500 Internal Server Error"))) as (proxy, exporter):
        await proxy.chat()
        assert not only(exporter).status.is_ok
        exporter.clear()
        proxy.engines[0].default = hangs()
        async with proxy.client() as client:
            asking = asyncio.create_task(client.post(chat_body()))
            while len(proxy.engines[0].requests) < 2:
                await asyncio.sleep(0)
            asking.cancel()
        await proxy.settle()
        assert dict(only(exporter).attributes or {})["pointsman.outcome"] == "cancelled"
        exporter.clear()
        await proxy.post({**chat_body(), "model": "nope"})
        assert dict(only(exporter).attributes or {})["pointsman.outcome"] == "refused"
