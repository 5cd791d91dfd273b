"""One simulated vLLM server: its routes over its model.

Everything a client can ask is in :data:`ROUTES`; what generation needs is handed to the stepper, everything else is
answered at once.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import zmq

from router.core.hardware import HardwareProfile
from router.engine import errors, metrics
from router.engine.answer import StreamAnswer, WholeAnswer
from router.engine.block_chain import block_chain, chain_seed
from router.engine.bodies import Envelope, models_body
from router.engine.clock import StepClock
from router.engine.fields import Fields
from router.engine.generation import Generation, parse_chat, parse_completion, render_prompt
from router.engine.http_server import Connection, DateLines, HttpRequest, Reply
from router.engine.kv_events import EventEncoder
from router.engine.kv_publisher import EventEndpoints, KvPublisher
from router.engine.models import ServedModels
from router.engine.sequence import Sequence
from router.engine.stepper import Stepper
from router.engine.tokens import VOCABULARY_SIZE, ids_of, pack_ids, text_of
from router.filler import filler
from router.sim.engine import Engine
from router.sim.kv_cache import KvEvent

VERSION = "0.32.0"
"""The vLLM whose wire format is spoken."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How one engine behaves. ``speedup`` > 0 divides every duration; a start delay and time limits are in seconds."""

    profile: HardwareProfile
    models: ServedModels
    block_tokens: int = 16
    speedup: float = 1.0
    api_key: str | None = None
    max_queued: int | None = None
    """Requests that may wait before others are refused with 503; None for any number."""
    start_delay_s: float = 0.0
    """How long the engine answers 503 after it began, as one that loads its weights."""
    shutdown_timeout_s: float = 0.0
    """How long running requests may go on after the order to stop; 0 ends them with the reason ``abort``."""
    events: EventEndpoints | None = None
    hash_seed: int = field(default_factory=lambda: secrets.randbits(64))

    def __post_init__(self) -> None:
        if not self.speedup > 0:
            raise errors.ConfigurationError(f"the speed-up must be above 0, not {self.speedup}")
        if self.models.max_model_len > self.profile.kv_capacity_tokens:
            raise errors.ConfigurationError(
                f"a context of {self.models.max_model_len} tokens does not fit into "
                f"{self.profile.kv_capacity_tokens} tokens of KV cache"
            )


class EngineInstance:
    """One engine: model, stepper, HTTP server and event sockets. :meth:`start` once, :meth:`stop` once."""

    def __init__(self, options: EngineOptions, clock: StepClock) -> None:
        self.options = options
        self.counters = metrics.EngineCounters()
        self._clock = clock
        self._model = Engine(options.profile, options.block_tokens, record_details=True)
        self._encoder = EventEncoder(options.block_tokens, options.models.adapters)
        self._publisher: KvPublisher | None = None
        self._stepper = Stepper(self._model, clock, options.speedup, self.counters, self._publish)
        self._fingerprint = f"vllm-{VERSION}-{options.hash_seed % 2**32:08x}"
        self._dates = DateLines()
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._started_unix_s = clock.unix_s()
        self._ready_at_s = clock.monotonic_s() + options.start_delay_s
        self._stopping = False
        self._dead = False

    @property
    def port(self) -> int:
        """The TCP port that is listened on."""
        if self._server is None:
            raise errors.ConfigurationError("the engine was not started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def stopping(self) -> bool:
        """Whether the order to stop was given."""
        return self._stopping

    @property
    def model(self) -> Engine:
        """The batching model, to be read only."""
        return self._model

    async def start(self, host: str, port: int) -> None:
        """Listen on ``host:port`` (0 for any port) and begin to step.

        :raises OSError: when a port is taken.
        """
        if self.options.events is not None:
            try:
                self._publisher = KvPublisher(zmq.Context.instance(), self.options.events)
            except zmq.ZMQError as error:
                raise OSError(error.errno, f"KV events on {self.options.events.events}: {error.strerror}") from error
            self._publisher.start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, host, port, backlog=2048)
        self._task = loop.create_task(self._stepper.run())
        self._task.add_done_callback(self._stepper_ended)

    async def stop(self) -> None:
        """Stop as vLLM does on SIGTERM: finish within the shutdown timeout, abort what is left, close everything."""
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.options.shutdown_timeout_s):
                await self._stepper.drained()
        self._stepper.abort_all()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close_when_idle()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._publisher is not None:
            await self._publisher.close()

    def fail(self) -> None:
        """Die as an engine core does that was killed: running requests get an error, so does everything after."""
        self._dead = True
        error = errors.engine_dead()
        for answer in self._stepper.take_listeners():
            answer.fail(error)

    # Requests

    def _connection(self) -> Connection:
        return Connection(self._handle, self._clock.unix_s, self._dates, self._connections)

    def _handle(self, request: HttpRequest, reply: Reply) -> None:
        methods = ROUTES.get(request.path)
        if methods is None:
            reply.send(404, b'{"detail":"Not Found"}')
        elif request.method not in methods:
            reply.send(405, b'{"detail":"Method Not Allowed"}', extra=f"allow: {', '.join(methods)}\r\n")
        elif not self._authorised(request):
            reply.send(401, b'{"error":"Unauthorized"}')
        elif not self._ready:
            reply.send(503)
        else:
            self._answer(methods[request.method], request, reply)

    def _answer(self, route: "Route", request: HttpRequest, reply: Reply) -> None:
        try:
            route(self, request, reply)
        except errors.ApiError as error:
            reply.send(error.status, error.body)

    def _authorised(self, request: HttpRequest) -> bool:
        key = self.options.api_key
        if key is None or not request.path.startswith("/v1"):
            return True
        return secrets.compare_digest(request.headers.get("authorization", "").encode(), f"Bearer {key}".encode())

    @property
    def _ready(self) -> bool:
        return self._clock.monotonic_s() >= self._ready_at_s

    # Generation

    def _chat(self, request: HttpRequest, reply: Reply) -> None:
        self._generate(parse_chat(request.body, self.options.models, request.headers.get("x-request-id")), reply)

    def _completion(self, request: HttpRequest, reply: Reply) -> None:
        self._generate(parse_completion(request.body, self.options.models, request.headers.get("x-request-id")), reply)

    def _generate(self, generation: Generation, reply: Reply) -> None:
        if self._dead:
            raise errors.engine_dead()
        if self._stopping:
            raise errors.shutting_down()
        envelope = Envelope(generation, int(self._clock.unix_s()), self._fingerprint)
        kind = StreamAnswer if generation.options.stream else WholeAnswer
        answer = kind(generation, envelope, reply, self.options.block_tokens)
        if self._full:
            self.counters.rejected += 1
            answer.fail(errors.overloaded())
            return
        sequences = self._sequences(generation, answer)
        answer.begin(sequences, self._stepper.drop)
        for sequence in sequences:
            self._stepper.submit(sequence)

    @property
    def _full(self) -> bool:
        return self.options.max_queued is not None and self._model.waiting >= self.options.max_queued

    def _sequences(self, generation: Generation, answer: StreamAnswer | WholeAnswer) -> list[Sequence]:
        seed = chain_seed(self.options.hash_seed, generation.adapter, generation.cache_salt)
        sequences: list[Sequence] = []
        for prompt in generation.prompts:
            for choice in range(generation.choices):
                says = prompt.packed + f"{generation.adapter}/{generation.seed}/{choice}".encode()
                output = filler(says, prompt.output_tokens)
                sequence = Sequence(len(sequences), prompt.packed, output, prompt.natural_end, answer)
                sequence.adapter, sequence.cache_salt = generation.adapter, generation.cache_salt
                sequence.chain = block_chain(prompt.packed + output, self.options.block_tokens, seed)
                sequences.append(sequence)
        return sequences

    # Everything else

    def _models(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(200, models_body(self.options.models, int(self._clock.unix_s())))

    def _health(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(503 if self._dead else 200, content_type=None)

    def _version(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(200, b'{"version":"%b"}' % VERSION.encode())

    def _load(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(200, b'{"server_load":%d}' % (self._model.running + self._model.waiting))

    def _tokenize(self, request: HttpRequest, reply: Reply) -> None:
        fields = Fields.of_body(request.body)
        ids = ids_of(render_prompt(fields))
        strings = [text_of(pack_ids([token])) for token in ids] if fields.flag("return_token_strs") else None
        body = {"count": len(ids), "max_model_len": self.options.models.max_model_len, "tokens": ids}
        reply.send(200, orjson.dumps(body | {"token_strs": strings}))

    def _detokenize(self, request: HttpRequest, reply: Reply) -> None:
        tokens = Fields.of_body(request.body).required("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise errors.invalid_field("tokens", "list_type", "Input should be a valid list", tokens)
        if not all(0 <= token < VOCABULARY_SIZE for token in tokens):
            raise errors.ApiError(400, "A token id is out of vocabulary")
        reply.send(200, orjson.dumps({"prompt": text_of(pack_ids(tokens))}))

    def _metrics(self, _: HttpRequest, reply: Reply) -> None:
        text = metrics.exposition(self.options.models.default, self.counters, self._gauges())
        reply.send(200, text, content_type=metrics.CONTENT_TYPE)

    def _gauges(self) -> metrics.EngineGauges:
        model = self._model
        return metrics.EngineGauges(
            running=model.running,
            waiting=model.waiting,
            kv_use=model.kv_use,
            preemptions=model.preemptions,
            prefix_queries=model.prefix_queries,
            prefix_hits=model.prefix_hits,
            block_tokens=model.kv_block_tokens,
            kv_blocks=model.cache.capacity,
            start_unix_s=self._started_unix_s,
            lag_s=self._stepper.lag_s,
        )

    def _reset_prefix_cache(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(200 if self._stepper.reset_prefix_cache() else 500, content_type=None)

    def _event_sources(self, _: HttpRequest, reply: Reply) -> None:
        reply.send(200, orjson.dumps([] if self._publisher is None else [_source(self._publisher.endpoints)]))

    def _publish(self, events: list[KvEvent], find: Callable[[str], Sequence | None]) -> None:
        if self._publisher is not None:
            self._publisher.publish(self._encoder.batch(self._clock.unix_s(), events, find))

    def _stepper_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            return
        _log.error("the simulated engine failed", exc_info=task.exception())
        self.fail()


Route = Callable[[EngineInstance, HttpRequest, Reply], None]

ROUTES: dict[str, dict[str, Route]] = {
    "/v1/chat/completions": {"POST": EngineInstance._chat},
    "/v1/completions": {"POST": EngineInstance._completion},
    "/v1/models": {"GET": EngineInstance._models},
    "/health": {"GET": EngineInstance._health},
    "/ping": {"GET": EngineInstance._health, "POST": EngineInstance._health},
    "/version": {"GET": EngineInstance._version},
    "/load": {"GET": EngineInstance._load},
    "/tokenize": {"POST": EngineInstance._tokenize},
    "/detokenize": {"POST": EngineInstance._detokenize},
    "/metrics": {"GET": EngineInstance._metrics},
    "/reset_prefix_cache": {"POST": EngineInstance._reset_prefix_cache},
    "/kv_event_sources": {"GET": EngineInstance._event_sources},
}
"""Path -> method -> what answers."""


def _source(endpoints: EventEndpoints) -> dict[str, Any]:
    return {
        "data_parallel_rank": 0,
        "endpoint": endpoints.events,
        "replay_endpoint": endpoints.replay,
        "topic": endpoints.topic,
    }
