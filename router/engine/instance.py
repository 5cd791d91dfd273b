"""One simulated vLLM server: its routes over its model.

Everything a client can ask is in :data:`ROUTES`; what generation needs is handed to the stepper, everything else is
answered at once.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from router.engine import errors, metrics
from router.engine.answer import StreamAnswer, WholeAnswer
from router.engine.block_chain import block_chain, chain_seed
from router.engine.bodies import Envelope, models_body
from router.engine.clock import StepClock
from router.engine.fields import Fields
from router.engine.generation import Generation, parse_chat, parse_completion, render_prompt
from router.engine.http_server import Connection, DateLines, HttpRequest, Reply
from router.engine.kv_publisher import BUFFER_BATCHES, SEND_LIMIT, EventEndpoints
from router.engine.options import EngineOptions
from router.engine.rank import EngineRank
from router.engine.sequence import Sequence
from router.engine.tokens import VOCABULARY_SIZE, ids_of, pack_ids, text_of
from router.filler import filler
from router.sim.engine import Engine

VERSION = "0.32.0"
"""The vLLM whose wire format is spoken."""

_log = logging.getLogger(__name__)


class EngineInstance:
    """One engine: its ranks behind one HTTP server. :meth:`start` once, :meth:`stop` once."""

    def __init__(self, options: EngineOptions, clock: StepClock) -> None:
        self.options = options
        self._clock = clock
        self._ranks = tuple(
            EngineRank(number, options.profile, options.block_tokens, options.speedup, clock)
            for number in range(options.ranks)
        )
        self._turn = 0
        self._rejected = 0
        self._fingerprint = f"vllm-{VERSION}-{options.hash_seed % 2**32:08x}"
        self._dates = DateLines()
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
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
    def ranks(self) -> tuple[EngineRank, ...]:
        """The data-parallel ranks, to be read only."""
        return self._ranks

    @property
    def model(self) -> Engine:
        """The batching model of rank 0, to be read only."""
        return self._ranks[0].model

    @property
    def counters(self) -> metrics.EngineCounters:
        """What rank 0 has done."""
        return self._ranks[0].counters

    async def start(self, host: str, port: int) -> None:
        """Listen on ``host:port`` (0 for any port) and begin to step.

        :raises OSError: when a port is taken.
        """
        if self.options.events is not None:
            for rank in self._ranks:
                rank.publish_to(self.options.events.of_rank(rank.number), self.options.models.adapters)
        self._server = await asyncio.get_running_loop().create_server(self._connection, host, port, backlog=2048)
        for rank in self._ranks:
            rank.start(self._stepper_ended)

    async def stop(self) -> None:
        """Stop as vLLM does on SIGTERM: finish within the shutdown timeout, abort what is left, close everything."""
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.options.shutdown_timeout_s):
                for rank in self._ranks:
                    await rank.stepper.drained()
        for rank in self._ranks:
            rank.stepper.abort_all()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close_when_idle()
        for rank in self._ranks:
            await rank.stop()

    def fail(self) -> None:
        """Die as an engine core does that was killed: running requests get an error, so does everything after."""
        self._dead = True
        error = errors.engine_dead()
        for rank in self._ranks:
            for answer in rank.stepper.take_listeners():
                answer.fail(error)

    # Requests

    def _connection(self) -> Connection:
        return Connection(self._handle, self._clock.unix_s, self._dates, self._connections, self._is_listening)

    def _is_listening(self) -> bool:
        return self._server is None or self._server.is_serving()

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
        request_id = request.headers.get("x-request-id")
        self._generate(parse_chat(request.body, self.options.models, request_id), self._rank_for(request), reply)

    def _completion(self, request: HttpRequest, reply: Reply) -> None:
        request_id = request.headers.get("x-request-id")
        self._generate(parse_completion(request.body, self.options.models, request_id), self._rank_for(request), reply)

    def _rank_for(self, request: HttpRequest) -> EngineRank:
        """Return the rank that ``X-data-parallel-rank`` pins, or else the least loaded one, in turns."""
        pinned = request.headers.get("x-data-parallel-rank")
        if pinned is not None:
            if not pinned.isdecimal() or int(pinned) >= len(self._ranks):
                raise errors.invalid_value(f"data_parallel_rank {pinned} is out of range.", "data_parallel_rank")
            return self._ranks[int(pinned)]
        self._turn += 1
        order = self._ranks[self._turn % len(self._ranks) :] + self._ranks[: self._turn % len(self._ranks)]
        return min(order, key=lambda rank: 4 * rank.model.waiting + rank.model.running)

    def _generate(self, generation: Generation, rank: EngineRank, reply: Reply) -> None:
        if self._dead:
            raise errors.engine_dead()
        if self._stopping:
            raise errors.shutting_down()
        envelope = Envelope(generation, int(self._clock.unix_s()), self._fingerprint)
        answer = self._answer_to(generation, envelope, reply)
        if self._full(rank):
            self._rejected += 1
            answer.fail(errors.overloaded())
            return
        sequences = self._sequences(generation, answer)
        answer.begin(sequences, rank.stepper.drop)
        for sequence in sequences:
            rank.stepper.submit(sequence)

    def _answer_to(self, generation: Generation, envelope: Envelope, reply: Reply) -> StreamAnswer | WholeAnswer:
        options = self.options
        if generation.options.stream:
            return StreamAnswer(generation, envelope, reply, options.block_tokens, options.keep_alive_s)
        return WholeAnswer(generation, envelope, reply, options.block_tokens)

    def _full(self, rank: EngineRank) -> bool:
        return self.options.max_queued is not None and rank.model.waiting >= self.options.max_queued

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
        load = sum(rank.model.running + rank.model.waiting for rank in self._ranks)
        reply.send(200, b'{"server_load":%d}' % load)

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
        ranks = tuple(rank.metrics() for rank in self._ranks)
        server = metrics.ServerMetrics(self.options.models.default, self._started_unix_s, self._rejected, ranks)
        reply.send(200, metrics.exposition(server), content_type=metrics.CONTENT_TYPE)

    def _reset_prefix_cache(self, _: HttpRequest, reply: Reply) -> None:
        cleared = [rank.stepper.reset_prefix_cache() for rank in self._ranks]
        reply.send(200, b'{"success":true}' if all(cleared) else b'{"success":false}')

    def _event_sources(self, _: HttpRequest, reply: Reply) -> None:
        sources = {str(rank.number): _source(rank.endpoints) for rank in self._ranks if rank.endpoints is not None}
        reply.send(200, orjson.dumps(sources))

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
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": endpoints.events,
        "replay_endpoint": endpoints.replay,
        "buffer_steps": BUFFER_BATCHES,
        "hwm": SEND_LIMIT,
        "max_queue_size": SEND_LIMIT,
        "topic": endpoints.topic,
    }
