"""What is fuzzed: each target takes any bytes, and fails where what it reads does not keep its promises.

A target must be the same for the same bytes. :data:`TARGETS` names them all.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Any

import h11
import orjson

from router.config import ModelAlias, ModelTarget
from router.core.prefix import PromptHasher, pack
from router.core.prefix.reference import ReferencePrefixIndex
from router.core.prefix.token_chain import TokenHasher
from router.kvevents.decoding import decode_batch
from router.kvevents.discovery import SGLANG_PATH, VLLM_PATH, discover, sglang_load_sources
from router.kvevents.errors import DecodeError, DiscoveryError, ReplayError
from router.kvevents.load_push import decode_load, prefill_rate
from router.kvevents.replay import parse_reply
from router.kvevents.residency import EngineResidency
from router.proxy.aliases import splits_of
from router.proxy.answer import Answer
from router.proxy.engine_metrics import read_metrics, restarted
from router.proxy.errors import BadRequest
from router.proxy.events.answer_message import chat_message, completion_text
from router.proxy.intake import Intake, IntakeDesk
from router.proxy.model_cards import parse_cards
from router.proxy.preload.common_body import COMMON
from router.proxy.routes import ROUTES
from router.proxy.sessions import Sessions
from router.proxy.sse import ErrorWatch, only_comments
from router.proxy.table import RoutingTable
from router.proxy.usage import read_usage
from router.proxy.wire.answer_heads import AnswerHeads
from router.proxy.wire.answer_reader import AnswerReader
from router.proxy.wire.body import ChunkedDecoder, FramingFault
from router.proxy.wire.encode import LAST_CHUNK
from router.proxy.wire.faults import AnswerFault
from router.proxy.wire.head import RequestHead, read_request_head
from router.state.calibration import BytesPerToken
from router.state.known_prompts import KnownPrompts
from tests.fuzz.byte_reader import ByteReader
from tests.fuzz.connections import connections
from tests.router.proxy.wire.test_request_reader import read, read_strictly

try:
    from router.core.prefix import _native
except ImportError:  # without a compiler
    _native = None  # type: ignore[assignment]

Target = Callable[[bytes], None]

# -- HTTP, both sides --


def requests(data: bytes) -> None:
    """However a client cuts its bytes, the requests are the same, and a strict parser sees them too."""
    pieces = ByteReader(data).pieces()
    raw = b"".join(pieces)
    if not raw:
        return
    whole = read([raw])
    cut = read(pieces)
    assert whole == cut or (whole[1] is not None and cut[1] is not None and whole[0] == cut[0])
    seen = whole[0]
    if b"HTTP/1.0" in raw or b"close" in raw.lower():
        seen = seen[:1]  # the reader reads on, and leaves it to its connection to close after the first
    assert seen == read_strictly(raw)[: len(seen)]


def chunks(data: bytes) -> None:
    """A chunked body is the same however it is cut, and never longer than what came."""
    pieces = ByteReader(data).pieces()
    seen = []
    for given in ([b"".join(pieces)], pieces):
        decoder, payload = ChunkedDecoder(), b""
        try:
            for piece in given:
                if decoder.complete:
                    decoder.surplus += piece
                else:
                    payload += decoder.feed(piece)
            seen.append((payload, decoder.complete, decoder.surplus))
        except FramingFault:
            seen.append((b"", False, b"fault"))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) <= sum(map(len, pieces))


def answers(data: bytes) -> None:
    """However an engine cuts its bytes, the answer is the same; where it is whole, a strict parser agrees."""
    pieces = ByteReader(data).pieces()
    raw = b"".join(pieces)
    whole, cut = _answer([raw]), _answer(pieces)
    if whole is None or cut is None:
        # A fault behind an answer that is complete is seen where it comes with the end, not where it comes after it.
        assert whole is None or cut is None
        return
    assert whole == cut
    status, body, complete = whole
    if complete and status != 304:
        assert _strict_answer(raw) in (None, (status, body))


def _answer(pieces: list[bytes]) -> tuple[int, bytes, bool] | None:
    reader, body = AnswerReader(4096, AnswerHeads()), b""
    try:
        for piece in pieces:
            if reader.complete:
                return None  # bytes that nobody asked for: the connection is dropped
            body += reader.feed(piece)
    except AnswerFault:
        return None
    return (0 if reader.head is None else reader.head.status), body, reader.complete


def _strict_answer(raw: bytes) -> tuple[int, bytes] | None:
    """Return what h11 reads; None where it refuses."""
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    wire.send(h11.Request(method="POST", target="/", headers=[("Host", "x")]))
    wire.send(h11.EndOfMessage())
    body = b""
    try:
        wire.receive_data(raw)
        while isinstance(head := wire.next_event(), h11.InformationalResponse):
            pass
        while isinstance(event := wire.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return None
    return (head.status_code, body) if isinstance(head, h11.Response) else None


# -- requests to prompts --

PATHS = [*sorted(ROUTES), b"/v1/made/up"]
NAMES = (
    *("model", "messages", "role", "content", "type", "text", "prompt", "input", "tools", "system", "instructions"),
    *("image_url", "url", "input_text", "tool_calls", "function", "name", "arguments", "cache_salt", "stream", "query"),
    *("documents", "max_tokens", "chat_template_kwargs", "queries", "text_1", "items", "m", "chat", "user", "thinking"),
)
TABLE = RoutingTable(
    1,
    {},
    frozenset({"m"}),
    splits=splits_of([ModelAlias(name="chat", targets=(ModelTarget(model="m", weight=1),))]),
)
HEADS = {path: read_request_head(b"POST %b HTTP/1.1\r\nHost: x\r\n\r\n" % path) for path in PATHS}
FORM = read_request_head(b"POST /v1/audio HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n")


def _intake(head: RequestHead, body: bytes) -> Intake:
    hasher = PromptHasher(1)
    desk = IntakeDesk(hasher, BytesPerToken(), random.Random(1), Sessions(), KnownPrompts(TokenHasher(1)))
    return desk.intake(head, body, "id", TABLE)


def bodies(data: bytes) -> None:
    """Any body of any path, or form, is taken in or refused as the client's fault, twice in the same way."""
    source = ByteReader(data)
    head = source.choice([*HEADS.values(), FORM])
    body = source.rest()
    try:
        taken = _intake(head, body)
    except BadRequest:
        return
    _check_intake(taken, body)
    assert _intake(head, body).chain == taken.chain


def prompts(data: bytes) -> None:
    """Any JSON object of any path is taken in, and a further message only adds to the prompt."""
    source = ByteReader(data)
    path = source.choice(PATHS)
    fields: dict[str, Any] = {name: source.json(NAMES) for name in (source.choice(NAMES) for _ in range(5))}
    fields["model"] = source.choice(["m", "chat", "other"])
    other = {**fields, source.choice(NAMES[1:]): source.json(NAMES)}
    for each in (fields, other):
        body = orjson.dumps(each)
        _check_intake(_intake(HEADS[path], body), body)
    if path in COMMON:
        common = COMMON[path](fields, other)
        assert common is None or isinstance(common, dict)
    if path == b"/v1/chat/completions" and isinstance(messages := fields.get("messages"), list):
        longer = ROUTES[path].extract({**fields, "messages": [*messages, {"role": "user", "content": "more"}]})
        assert longer.text.startswith(ROUTES[path].extract(fields).text)


def _check_intake(taken: Intake, body: bytes) -> None:
    assert taken.request.prompt_tokens >= 1
    assert taken.request.tokens_per_block > 0
    assert len(taken.chain) % 8 == 0
    if taken.body is not body:  # an alias
        before, after = orjson.loads(body), orjson.loads(taken.body)
        assert {**before, "model": "m"} == after


# -- answers to what is learnt from them --


def streams(data: bytes) -> None:
    """Whatever an engine streams: errors are seen wherever it is cut, and a broken stream ends in a whole event."""
    source = ByteReader(data)
    pieces = source.pieces()
    raw = b"".join(pieces)
    if max(map(len, raw.split(b"\n"))) < 2048:
        whole, watch = ErrorWatch(), ErrorWatch()
        seen = [watch.see(piece) for piece in pieces]
        whole_saw = whole.see(raw)
        assert (whole_saw is None) == all(status is None for status in seen)
        _check_errors(raw, is_seen=whole_saw is not None)
    only_comments(raw)
    _check_usage(raw)
    reader = AnswerReader(4096, AnswerHeads())
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert reader.head is not None
    answer = Answer(reader.head, 1, True)
    framed = b"".join(answer.frame(piece, False) for piece in pieces)
    told = ChunkedDecoder()
    assert told.feed(framed + LAST_CHUNK) == raw
    assert told.complete


def _check_errors(raw: bytes, *, is_seen: bool) -> None:
    """Where every event is one JSON object with one error at most, an error is seen if there is one."""
    events = [line[5:] for line in raw.split(b"\n")[:-1] if line.startswith(b"data:")]
    try:
        told = [orjson.loads(event) for event in events]
    except orjson.JSONDecodeError:
        return
    if all(isinstance(event, dict) for event in told) and all(event.count(b'"error"') == 1 for event in events):
        assert is_seen <= any(event.get("error") is not None for event in told)


def answer_bodies(data: bytes) -> None:
    """Whatever an engine answers, streamed or whole, is learnt from or not."""
    source = ByteReader(data)
    if source.below(2):
        names = ("choices", "index", "delta", "content", "tool_calls", "function", "name", "arguments", "usage", "text")
        names += ("message", "finish_reason", "stop", "prompt_tokens", "completion_tokens", "prompt_tokens_details")
        names += ("cached_tokens", "input_tokens", "output_tokens", "cache_read_input_tokens", "id", "role", "error")
        events = [orjson.dumps(source.json(names, 6)) for _ in range(1 + source.below(4))]
        raw = b"".join(b"data: %b\n\n" % event for event in events) + b"data: [DONE]\n\n"
        _read_answer(events[0])
    else:
        raw = source.rest()
    _read_answer(raw)


def _read_answer(raw: bytes) -> None:
    _check_usage(raw)
    for streamed in (True, False):
        text = completion_text(raw, streamed=streamed)
        assert text is None or isinstance(text, str)
        reading = chat_message(raw, streamed=streamed)
        with suppress(StopIteration):
            while True:
                next(reading)


def _check_usage(raw: bytes) -> None:
    usage = read_usage(raw)
    if usage is not None:
        assert usage.prompt_tokens >= 0
        assert usage.output_tokens >= 0
        assert usage.cached_tokens is None or usage.cached_tokens >= 0


def metrics(data: bytes) -> None:
    """Any text is read as load or as missing: never as a number that is none."""
    source = ByteReader(data)
    rank = source.choice([None, 0, 1])
    first, second = source.take(source.below(65_536)), source.rest()
    readings = [read_metrics(text, rank) for text in (first, second)]
    restarted(*readings)
    for reading in readings:
        report = reading.report
        for number in (report.running, report.waiting, report.kv_use, report.kv_capacity_tokens, reading.served_tokens):
            assert number is None or (isfinite(number) and number >= 0)
        assert report.kv_use is None or report.kv_use <= 1


def engine_pages(data: bytes) -> None:
    """What an engine says of its models and of where it publishes is understood or refused."""
    source = ByteReader(data)
    names = ("sources", "endpoint", "replay_endpoint", "topic", "data_parallel_rank", "kv_events", "publisher", "zmq")
    names += ("endpoint_port_base", "endpoint_host", "dp_size", "load_endpoint_port_base", "kv_events_config", "data")
    names += ("id", "tcp://*:5557", "tcp://[::]:1", "tcp://a:0", "0", "1", "block_size", "parent")
    body = orjson.dumps(source.json(names, 5)) if source.below(2) else source.rest()
    with suppress(ValueError):
        assert all(isinstance(card["id"], str) for card in parse_cards(body))
    for path in (VLLM_PATH, SGLANG_PATH):
        with suppress(DiscoveryError):
            assert all(each.events.startswith("tcp://") for each in discover({path: (200, body)}, "http://a:1"))
    with suppress(DiscoveryError):
        sglang_load_sources(body, "http://a:1")


# -- KV events --


def kv_events(data: bytes) -> None:
    """Any payload is events, or refused; after any events the residency adds up, and clearing leaves nothing."""
    source = ByteReader(data)
    residency = EngineResidency(TokenHasher(1), max_blocks=64)
    while source.left:
        payload = source.take(1 + source.below(1024))
        try:
            batch = decode_batch(payload)
        except DecodeError:
            continue
        residency.apply(batch)
        residency.check_integrity()
    residency.clear()
    assert not residency.chains


def kv_frames(data: bytes) -> None:
    """Pushed load and replies to replays are understood or refused."""
    source = ByteReader(data)
    frames = [source.take(source.below(64)) for _ in range(source.below(5))]
    with suppress(ReplayError):
        parse_reply(frames)
    with suppress(DecodeError):
        before = decode_load([b"load", bytes(8), source.take(source.below(256))])
        after = decode_load([b"load", bytes(8), source.rest()])
        assert (rate := prefill_rate(before, after)) is None or rate > 0
        assert after.kv_use is None or 0 <= after.kv_use <= 1


# -- the prefix index, compiled and plain --

_STEPS = ("add", "remove", "clear", "capacity", "insert", "store", "discard", "match", "resident")


def prefix_index(data: bytes) -> None:
    """After any history the compiled index and the plain one agree in everything that can be asked."""
    source = ByteReader(data)
    most = 1 + source.below(40)
    both = [ReferencePrefixIndex(max_blocks=most)] + ([] if _native is None else [_native.NativePrefixIndex(most)])
    while source.left:
        name, slot, chain = source.choice(_STEPS), source.below(5), _chain(source)
        outcomes = [_step(index, name, slot, chain) for index in both]
        assert all(outcome == outcomes[0] for outcome in outcomes)
        for index in both:
            index.check_integrity()
        assert len({(index.blocks, index.entries, index.capacity) for index in both}) == 1


def _chain(source: ByteReader) -> bytes:
    """Return a path in a tree, so that equal ids mean equal prefixes; now and then what is no chain."""
    node, ids = 0, []
    for _ in range(source.below(12)):
        node = node * 3 + source.below(3) + 1
        ids.append(node)
    return pack(ids) + b"x" * (source.below(16) == 15)


def _step(index: Any, name: str, slot: int, chain: bytes) -> object:
    size = len(chain) // 8
    try:
        match name:
            case "add":
                return index.add_instance(size)
            case "remove":
                return index.remove_instance(slot)
            case "clear":
                return index.clear(slot)
            case "capacity":
                return index.set_capacity(slot, size)
            case "match":
                return index.match(chain)
            case "resident":
                return index.resident(slot)
            case _:
                return getattr(index, name)(slot, chain)
    except (ValueError, IndexError) as error:
        return type(error)


def hashes(data: bytes) -> None:
    """Both implementations hash alike, take every length, and refuse the same."""
    if _native is None:
        return
    source = ByteReader(data)
    seed, block_bytes, most = source.take(source.choice([16, 16, 16, 15, 0])), source.below(40), source.below(70)
    key, parent = source.take(source.below(40)), int.from_bytes(source.take(8), "big")
    text = source.rest()
    with suppress(ValueError):
        chain = _native.hash_chain(seed, key, memoryview(text), block_bytes, most)
        assert len(chain) == 8 * min(len(text) // block_bytes, most)
        for blocks in range(len(chain) // 8):
            assert _native.hash_chain(seed, key, text[: blocks * block_bytes], block_bytes, most) == chain[: 8 * blocks]
        cut = source.below(9) + 3
        assert _native.common_blocks(chain, chain[:cut]) == min(cut, len(chain)) // 8
    with suppress(ValueError):
        assert len(_native.hash_tokens(seed, parent, text, block_bytes)) == 8 * (len(text) // block_bytes)


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        *(requests, connections, chunks, answers, bodies, prompts, streams, answer_bodies, metrics, engine_pages),
        *(kv_events, kv_frames, prefix_index, hashes),
    )
}
