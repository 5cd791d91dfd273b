"""Where traffic goes: simultaneous requests, idle fleets, and one hot prefix."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from random import Random

from router.core.hardware_profiles import DEFAULT_PROFILE
from router.core.policy import Policy
from router.sim.traces.loading import TraceFormat, load_trace
from router.sim.traces.record import Trace
from tests.fakes.engine import FakeEngine, Peer, Received, http, serving
from tests.fakes.idle_time import in_idle_time
from tests.router.proxy.harness import chat_body, proxying
from tests.router.replay.live import replayed

ENGINES = 8


class Caching(FakeEngine):
    """An engine with a prefix cache of its own: prefill one after the other, decoding side by side."""

    def __init__(self, s_per_new_token: float, decode_s: float) -> None:
        super().__init__(self._serve)
        self._s_per_new_token = s_per_new_token
        self._decode_s = decode_s
        self._seen: set[str] = set()
        self._prefill = asyncio.Lock()
        self.prompt_tokens = 0
        self.hit_tokens = 0

    async def _serve(self, request: Received, peer: Peer) -> None:
        messages = json.loads(request.body)["messages"]
        new = 0
        async with self._prefill:
            for message in messages:
                tokens = len(message["content"]) // 4
                self.prompt_tokens += tokens
                if message["content"] in self._seen:
                    self.hit_tokens += tokens
                else:
                    new += tokens
                self._seen.add(message["content"])
            await asyncio.sleep(new * self._s_per_new_token)
        await asyncio.sleep(self._decode_s)
        peer.send(http("200 OK", b"{}"))


async def test_a_hundred_simultaneous_equal_requests_spread_within_two_of_even() -> None:
    all_here = asyncio.Event()

    async def answer_when_all_are_here(request: Received, peer: Peer) -> None:
        if sum(len(engine.requests) for engine in engines) == 100:
            all_here.set()
        await all_here.wait()
        peer.send(http("200 OK", b"{}"))

    engines = [FakeEngine(answer_when_all_are_here) for _ in range(ENGINES)]
    async with serving(engines), proxying(*engines) as proxy:
        answers = await asyncio.gather(*(proxy.chat("the same words " * 400) for _ in range(100)))
        shares = Counter(answer.fields["x-pointsman-instance"] for answer in answers)
        assert len(shares) == ENGINES
        assert all(abs(count - 100 / ENGINES) <= 2 for count in shares.values()), shares


async def test_an_idle_fleet_shares_cold_traffic_evenly() -> None:
    engines = [FakeEngine() for _ in range(ENGINES)]
    random = Random(3)
    async with serving(engines), proxying(*engines) as proxy:
        for _ in range(ENGINES * 25):
            await proxy.chat("".join(random.choices("abcdefgh ", k=800)))
        assert {len(engine.requests) for engine in engines} == {25}


@in_idle_time
async def test_one_hot_prefix_is_replicated_and_still_hit() -> None:
    """A shared 4k system prompt, Poisson arrivals, about eight requests an engine: neither pinned nor scattered."""
    system = {"role": "system", "content": "s" * 16_384}
    random = Random(11)
    decode_s = 0.15
    engines = [Caching(1e-5, decode_s) for _ in range(ENGINES)]
    async with serving(engines), proxying(*engines) as proxy:

        async def one(number: int) -> None:
            user = {"role": "user", "content": f"question {number} " + "q" * random.randrange(200)}
            assert (await proxy.post({"model": "m", "messages": [system, user]})).status == 200

        asking = []
        for number in range(1200):
            asking.append(asyncio.create_task(one(number)))
            await asyncio.sleep(random.expovariate(ENGINES * 8 / decode_s))
        await asyncio.gather(*asking)
        requests = [len(engine.requests) for engine in engines]
        hits = sum(engine.hit_tokens for engine in engines) / sum(engine.prompt_tokens for engine in engines)
        assert max(requests) / (sum(requests) / ENGINES) <= 1.3, requests
        assert hits >= 0.8


def hot_prompt_trace(file: Path, requests: int, per_second: float) -> Trace:
    """Make Poisson arrivals that share a 4,096-token prompt and end in 60 tokens of their own."""
    random, now_ms, lines = Random(5), 0.0, []
    for number in range(requests):
        now_ms += random.expovariate(per_second) * 1000
        record = {"timestamp": int(now_ms), "input_length": 4156, "output_length": random.randrange(40, 80)}
        lines.append(json.dumps(record | {"hash_ids": [*range(8), 1000 + number]}))
    file.write_text("\n".join(lines))
    return load_trace(file, TraceFormat.MOONCAKE)


def test_one_hot_prompt_of_a_trace_is_replicated_instead_of_pinning_a_simulated_engine(tmp_path: Path) -> None:
    trace = hot_prompt_trace(tmp_path / "hot.jsonl", requests=300, per_second=60)
    report = replayed(trace, engines=ENGINES, profile=DEFAULT_PROFILE)
    assert (report.errors, report.requests) == (0, 300)
    assert report.hit_ratio is not None
    assert report.hit_ratio >= 0.8
    assert max(report.instances.values()) / (report.requests / ENGINES) <= 1.3, report.instances


async def test_each_workload_is_routed_by_its_own_policy() -> None:
    policies = (Policy(), Policy(name="rr", scorer="round_robin"))
    engines = [FakeEngine() for _ in range(4)]
    async with serving(engines), proxying(*engines, policies=policies) as proxy:
        text = "a prefix to remember " * 40
        sticky = [await proxy.chat(text) for _ in range(8)]
        assert len({a.fields["x-pointsman-instance"] for a in sticky}) == 1
        turns = [await proxy.post(chat_body(text), X_Pointsman_Workload="rr") for _ in range(8)]
        assert Counter(a.fields["x-pointsman-instance"] for a in turns).most_common()[0][1] == 2
        assert {a.fields["x-pointsman-policy"] for a in turns} == {"rr@1"}
