"""Chaos: engines die, hang, slow down, come back and join under streams whose clients leave at random.

``POINTSMAN_CHAOS_S=600 POINTSMAN_CHAOS_STREAMS=200`` runs the long form, ``-s`` shows its figures. Every answer is
known in advance, so a wrong byte is seen, in a stream that breaks as well.
"""

import asyncio
import json
import os
from collections import Counter
from contextlib import suppress
from random import Random

import h11
import pytest

from router.proxy.breaker import BreakerRule
from router.proxy.limits import Limits
from router.proxy.process import open_files, resident_bytes
from tests.fakes.engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, Peer, Received, chunk, serving
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Proxy, chat_body, proxying, request_bytes

CHAOS_S = float(os.environ.get("POINTSMAN_CHAOS_S", "5"))
STREAMS = int(os.environ.get("POINTSMAN_CHAOS_STREAMS", "60"))
ENGINES = 6
LIMITS = Limits(first_byte_s=1.0, between_bytes_s=1.0, upstream_connect_s=0.5, drain_s=1.0)
WHOLE = 100
"""Answers that come whole at least, however long a busy machine takes for them."""


def events_of(text: str) -> list[bytes]:
    """The stream that any engine gives for a prompt."""
    random = Random(text)
    return [b"data: %s\n\n" % random.randbytes(20).hex().encode() for _ in range(random.randrange(1, 25))]


class Moody(FakeEngine):
    """An engine with moods: ``hanging`` and ``delay_s`` apply to what it is asked and what it is telling."""

    def __init__(self) -> None:
        super().__init__(self._serve)
        self.hanging = False
        self.delay_s = 0.002
        self.alive = True

    async def _serve(self, request: Received, peer: Peer) -> None:
        self.requests.clear()  # which grow without end
        events = events_of(json.loads(request.body)["messages"][0]["content"])
        peer.send(STREAM_HEAD)
        for event in events:
            await asyncio.sleep(self.delay_s)
            if self.hanging:
                await peer.gone.wait()
            peer.send(chunk(event))
        peer.send(chunk(b"data: [DONE]\n\n") + LAST_CHUNK)


def failures_of(proxy: Proxy) -> Counter[str]:
    """Return how many attempts failed, by kind, at the instances that are configured."""
    proxy.plane.stats.roll()
    counts = proxy.plane.stats.totals
    return sum((Counter(counts.instance(id_).failures) for id_ in counts.instances), Counter[str]())


async def torment(engines: list[Moody], proxy: Proxy, random: Random, forgotten: Counter[str]) -> None:
    """Change one engine's fate after the other; two are always well. ``forgotten``: failures at those that left."""
    while True:
        await asyncio.sleep(random.uniform(0.05, 0.4))
        engine = random.choice(engines[2:])
        fate = random.randrange(5)
        if fate == 0 and engine.alive:
            engine.alive = False
            await engine.stop()
        elif fate == 1 and not engine.alive:
            engine.hanging, engine.alive = False, True
            await engine.start()
        elif fate == 2:
            engine.hanging = not engine.hanging
        elif fate == 3:
            engine.delay_s = random.choice([0.001, 0.002, 0.03])
        else:
            before = failures_of(proxy)
            proxy.apply(random.sample(engines[2:], random.randrange(1, len(engines) - 1)) + engines[:2])
            forgotten += before - failures_of(proxy)


async def one_request(proxy: Proxy, number: int, random: Random) -> str:
    """Send one request, check every byte of what comes back, and say how it ended."""
    text = f"request {number}"
    expected = b"".join(events_of(text)) + b"data: [DONE]\n\n"
    leaves = random.random() < 0.2
    async with proxy.client() as client:
        client.send(request_bytes(json.dumps(chat_body(text, stream=True)).encode()))
        if leaves:
            await asyncio.sleep(random.uniform(0, 0.05))
            client.reset()
            return "left"
        try:
            answer = await client.answer()
        except (h11.RemoteProtocolError, ConnectionResetError):
            came, error, _ = b"".join(client.pieces).partition(b'data: {"error"')
            assert expected.startswith(came.rstrip(b"\n"))
            assert error
            return "broken"
    if answer.status == 502 and "engines died" in answer.json["error"]["message"]:
        return "given up"
    if answer.status != 200:
        return f"status {answer.status}: {answer.body.decode()}"
    assert answer.body == expected
    return "whole"


def explain(proxy: Proxy, seen: Counter[str], forgotten: Counter[str]) -> None:
    """Find every end that clients saw in the worker's counts; those who left may have had any."""
    outcomes, suspects = proxy.outcomes(), proxy.plane.suspects
    failures, retries = failures_of(proxy) + forgotten, proxy.plane.stats.totals.retries
    print(f"\nseen {dict(seen)}\ncounted {outcomes}\nfailed attempts {dict(failures)}\nretries {retries}")
    assert set(outcomes) <= {"ok", "broken", "cancelled", "upstream_error"}
    assert sum(outcomes.values()) <= sum(seen.values())
    for outcome, end in (("ok", "whole"), ("broken", "broken"), ("upstream_error", "given up")):
        assert 0 <= outcomes.get(outcome, 0) - seen[end] <= seen["left"]
    assert outcomes.get("upstream_error", 0) == suspects.given_up
    assert suspects.refused == 0
    assert sum(failures.values()) >= outcomes.get("broken", 0) + 2 * suspects.given_up
    assert set(failures) <= {"connect", "connect_timeout", "reset", "first_byte_timeout", "stalled"}


@pytest.mark.timeout(900)
async def test_chaos_breaks_only_streams_that_had_begun() -> None:
    random = Random(5)
    engines = [Moody() for _ in range(ENGINES)]
    rule = BreakerRule(first_backoff_s=0.1, most_backoff_s=1.0)
    async with serving(engines), proxying(*engines, limits=LIMITS, rule=rule) as proxy:
        files, resident = open_files(), resident_bytes()
        forgotten = Counter[str]()
        tormenting = asyncio.create_task(torment(engines, proxy, random, forgotten))
        numbers = iter(range(10**9))
        seen: Counter[str] = Counter()
        ends_s = proxy.plane.loop.time() + CHAOS_S

        async def one_stream() -> None:
            while proxy.plane.loop.time() < ends_s or seen["whole"] < WHOLE:
                async with asyncio.timeout(PATIENCE_S):
                    seen[await one_request(proxy, next(numbers), random)] += 1

        await asyncio.gather(*(one_stream() for _ in range(STREAMS)))
        tormenting.cancel()
        with suppress(asyncio.CancelledError):
            await tormenting
        for engine in engines:
            if not engine.alive:
                await engine.start()
        while proxy.plane.open_clients:
            await asyncio.sleep(0.01)
        assert set(seen) <= {"whole", "broken", "given up", "left"}, seen
        assert seen["whole"] >= WHOLE
        assert not any(proxy.counters.values())
        assert len(proxy.plane.deadlines) == 0
        explain(proxy, seen, forgotten)
        proxy.expire()  # what is idle at the engines
        while open_files() > files:
            await asyncio.sleep(0.01)
        print(f"resident {resident >> 20} to {resident_bytes() >> 20} MB, {files} open files as before")
