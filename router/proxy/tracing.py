"""OpenTelemetry traces with the conventions for generative AI. Needs the extra ``otel``; never holds prompt text.

Where spans go, and how many of them, is said by OpenTelemetry's own environment variables
(``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER``, ``OTEL_SERVICE_NAME``, ...).
"""

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from router import __version__
from router.proxy.intake import Intake
from router.proxy.ledger import ERRORS, Ended
from router.proxy.usage import Usage
from router.proxy.wire.grammar import Fields

_CARRIED = (b"traceparent", b"tracestate")
_OPERATIONS = {"completions": "text_completion", "embeddings": "embeddings"}
_propagator = TraceContextTextMapPropagator()


class OtelSpan:
    """The span of one request."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> bytes:
        """What an engine is told, so that its own spans hang below this one."""
        context = self._span.get_span_context()
        return b"00-%032x-%016x-%02x" % (context.trace_id, context.span_id, context.trace_flags)

    def end(self, ended: Ended, attempts: int, usage: Usage | None) -> None:
        """Say how the request went: where it was placed and why, how long its first token took, what it used."""
        span = self._span
        span.set_attribute("pointsman.outcome", ended.outcome.value)
        span.set_attribute("pointsman.attempts", attempts)
        if ended.first_token_s:
            span.set_attribute("gen_ai.response.time_to_first_chunk", ended.first_token_s - ended.started_s)
        _describe_decision(span, ended)
        if usage is not None:
            span.set_attribute("gen_ai.usage.input_tokens", usage.prompt_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
            if usage.cached_tokens is not None:
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens)
        if ended.answer is not None:
            span.set_attribute("http.response.status_code", ended.answer.status)
        if ended.outcome in ERRORS:
            span.set_attribute("error.type", ended.outcome.value)
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class OtelTracer:
    """Begins spans; ``close`` sends what was not sent yet."""

    def __init__(self, processor: SpanProcessor, worker: str) -> None:
        self._provider = TracerProvider(
            resource=Resource.create({SERVICE_NAME: "pointsman", "service.instance.id": worker})
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("pointsman.router", __version__)

    def begin(self, fields: Fields, intake: Intake) -> OtelSpan:
        """Begin the span of a request, below the one that its header fields name, if they name one."""
        carrier = {name.decode(): fields[name].decode("latin-1") for name in _CARRIED if name in fields}
        request = intake.request
        operation = _OPERATIONS.get(intake.route.name, intake.route.name)
        span = self._tracer.start_span(
            f"{operation} {request.model}",
            context=_propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.request.model": request.model,
                "pointsman.request_id": request.id,
                "pointsman.workload": request.workload,
                "pointsman.prompt_tokens": request.prompt_tokens,
            },
        )
        return OtelSpan(span)

    def close(self) -> None:
        """Send what was not sent yet, and end."""
        self._provider.shutdown()


def otlp_tracer(worker: str) -> OtelTracer:
    """Make a tracer that sends over OTLP/HTTP, as the environment says."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OtelTracer(BatchSpanProcessor(OTLPSpanExporter()), worker)


def _describe_decision(span: Span, ended: Ended) -> None:
    decision = ended.decision
    if decision is None:
        return
    span.set_attribute("pointsman.policy", decision.policy.label)
    chosen, score = decision.chosen, decision.score
    if chosen is not None and score is not None:
        span.set_attribute("pointsman.instance", chosen.view.name)
        span.set_attribute("pointsman.score", float(score))
        span.set_attribute("pointsman.p_token", chosen.p_token)
        span.set_attribute("pointsman.bs", chosen.bs)
        span.set_attribute("pointsman.predicted_hit_tokens", chosen.hit_tokens)
