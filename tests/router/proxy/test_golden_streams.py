"""Recorded answers of real engines, played back in random slices: the client gets the same body, byte for byte."""

import json
from random import Random

import h11
import pytest

from router.proxy.breaker import BreakerRule
from tests.fakes.engine import FakeEngine, Peer, Received, Script, sliced
from tests.router.proxy.harness import chat_body, proxying
from tests.shared_material import shared_path

FOLDERS = ("wire", "wire-0.28", "wire-sglang")
UNREADABLE = {"models", "err_badjson", "err_badtype", "err_nomessages", "err_toolong", "err_toolong_stream", "metrics"}
"""Recordings in which paths were replaced, so that their length may be off ..."""
CUT = {"llamacpp_chat_stream", "stream_keepalive", "err_tokid_oob"}
"""... and those that end before their answer does."""
PATHS = {
    "compl": "/v1/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "tokenize": "/tokenize",
    "detokenize": "/detokenize",
}


def recordings(folder: str) -> dict[str, bytes]:
    """Return the recorded answers of a folder by name."""
    return {path.stem: path.read_bytes() for path in sorted(shared_path(f"samples/{folder}").glob("*.resp"))}


def read(raw: bytes) -> tuple[h11.Response, bytes] | None:
    """Return head and body as h11 reads them, or None for what it refuses."""
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    wire.send(h11.Request(method="POST", target="/", headers=[("Host", "x")]))
    wire.send(h11.EndOfMessage())
    wire.receive_data(raw)
    wire.receive_data(b"")
    body = b""
    try:
        head = wire.next_event()
        while isinstance(event := wire.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return None
    return (head, body) if isinstance(head, h11.Response) else None


def path_of(name: str) -> str:
    return next((path for start, path in PATHS.items() if name.startswith(start)), "/v1/chat/completions")


def plays(raw: bytes, random: Random) -> Script:
    """Send a recording in random slices, some of them a single byte."""

    async def script(request: Received, peer: Peer) -> None:
        await peer.send_slices(
            sliced(raw, random, most=random.choice([1, 7, 60, 4000] if len(raw) < 5000 else [60, 4000]))
        )
        if b"connection: close" in raw.lower():
            peer.close()

    return script


@pytest.mark.parametrize("folder", FOLDERS)
async def test_every_recorded_answer_passes_byte_for_byte(folder: str) -> None:
    random = Random(folder)
    played = set()
    rule = BreakerRule(failures=10**9)
    async with FakeEngine() as engine, proxying(engine, rule=rule) as proxy:
        for name, raw in recordings(folder).items():
            expected = read(raw)
            if expected is None:
                continue
            head, body = expected
            for _ in range(4):
                engine.default = plays(raw, random)
                answer = await proxy.post(chat_body(stream="stream" in name), path_of(name))
                assert (answer.status, answer.body) == (head.status_code, body), name
                assert answer.fields.get("content-type", "").encode() == dict(head.headers).get(b"content-type", b"")
            played.add(name)
        assert not any(proxy.counters.values())
    missing = set(recordings(folder)) - played - UNREADABLE - CUT
    assert not missing


@pytest.mark.parametrize("name", ["stream_503_in_200", "stream_engine_killed"])
async def test_a_failure_inside_a_200_is_counted_as_one(name: str) -> None:
    script = plays(recordings("wire")[name], Random(name))
    async with FakeEngine(script) as engine, proxying(engine) as proxy:
        await proxy.chat(stream=True)
        assert proxy.outcomes() == {"upstream_error": 1}
        assert proxy.plane.links[0].breaker.failures == 1


@pytest.mark.parametrize("folder", FOLDERS)
async def test_what_a_recorded_engine_says_about_usage_is_learnt(folder: str) -> None:
    raw = recordings(folder)["chat"]
    expected = read(raw)
    assert expected is not None
    usage = json.loads(expected[1])["usage"]
    async with FakeEngine(plays(raw, Random(1))) as engine, proxying(engine) as proxy:
        await proxy.chat("x" * 200)
        assert proxy.plane.calibration.get("m") == 206 / usage["prompt_tokens"]
        proxy.plane.stats.roll()
        assert proxy.plane.stats.totals.workload("default").output_tokens == usage["completion_tokens"]
