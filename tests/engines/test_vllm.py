"""Two real vLLM servers behind a router worker: what it predicts to be cached is what they report."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path
from random import Random
from statistics import mean, median

import httpx
import pytest

from router.config import ConfigDocument, InstanceConfig, KvEventsConfig, WorkloadConfig, dump_config
from router.core.policy import Policy
from router.proxy.limits import Limits
from router.proxy.worker import Worker, WorkerSettings
from router.snapshot import Residency
from tests.engines.conversations import Conversation, Turn, decided, text_of
from tests.engines.lossy_events import lossy_events
from tests.engines.vllm_server import BLOCK_TOKENS, KV_TOKENS, LONGEST, MODEL, VllmServer, vllm_servers

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

POLL_S = 0.5
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[VllmServer]]:
    with vllm_servers(tmp_path_factory.mktemp("vllm")) as found:
        yield found


class Routed:
    """A worker in this process, and a client of it."""

    def __init__(self, worker: Worker, client: httpx.AsyncClient) -> None:
        self.worker = worker
        self.plane = worker.plane
        self.client = client

    async def turn(self, conversation: Conversation, words: int, **fields: object) -> Turn:
        """Take a turn, and wait until the router knows what it said: a person takes longer to answer."""
        turn = await conversation.turn(self.client, self.plane, words, **fields)
        events = self.plane.events
        assert events is not None
        async with asyncio.timeout(PATIENCE_S):
            await events.learner.drained()
        return turn

    def is_exact(self, name: str) -> bool:
        """Tell whether an instance's residency is known by its events."""
        events = self.plane.events
        return events is not None and any(
            link.instance.config.name == name and events.standing(link).residency is Residency.EVENTS
            for link in self.plane.links.values()
        )

    async def until_exact(self, *names: str) -> None:
        """Wait until instances are followed."""
        async with asyncio.timeout(PATIENCE_S):
            while not all(self.is_exact(name) for name in names):
                await asyncio.sleep(0.05)


@asynccontextmanager
async def routing(
    folder: Path, servers: Sequence[VllmServer], policy: Policy | None = None, **events: str
) -> AsyncIterator[Routed]:
    """Run a worker in front of the servers; ``events`` are other endpoints to read the events of servers at."""
    document = ConfigDocument(
        revision=1,
        instances=tuple(
            InstanceConfig(
                id=server.name,
                name=server.name,
                url=server.url,
                models=(MODEL,),
                kv_events=KvEventsConfig(endpoint=events[server.name], replay=server.replay)
                if server.name in events
                else None,
            )
            for server in servers
        ),
        policies=(policy or Policy(),),
        workloads=(WorkloadConfig(name="default", policy="default"),),
    )
    file = folder / "config.json"
    file.write_bytes(dump_config(document))
    settings = WorkerSettings(port=0, config_file=file, poll_s=POLL_S, limits=Limits(drain_s=1.0))
    worker = Worker(settings, asyncio.get_running_loop())
    await worker.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.address[1]}") as client:
            routed = Routed(worker, client)
            await routed.until_exact(*(server.name for server in servers))
            yield routed
    finally:
        await worker.stop()


def hit_ratio(turns: Sequence[Turn]) -> float:
    """Return the share of prompt tokens that the engines had cached."""
    return sum(turn.cached_tokens for turn in turns) / sum(turn.prompt_tokens for turn in turns)


def p95(values: Sequence[float]) -> float:
    """Return the smallest of the values that 95 % of them do not exceed."""
    return sorted(values)[ceil(0.95 * len(values)) - 1]


def summary(name: str, turns: Sequence[Turn]) -> str:
    errors = sorted(abs(turn.error_blocks) for turn in turns)
    return (
        f"\n{name}: {len(turns)} turns of {min(t.prompt_tokens for t in turns)} to "
        f"{max(t.prompt_tokens for t in turns)} tokens, {dict(Counter(t.instance for t in turns))}; "
        f"error in blocks: median {median(errors):g}, p95 {p95(errors):g}, most {errors[-1]:g}, "
        f"wrong {sum(error > 0 for error in errors)}; exact {sum(t.exact for t in turns)}; "
        f"hit ratio {hit_ratio(turns):.3f}, mean TTFT {1e3 * mean(t.ttft_s for t in turns):.1f} ms"
    )


def check_predictions(turns: Sequence[Turn]) -> None:
    """Median error 0 blocks, 95th percentile at most 1."""
    errors = [abs(turn.error_blocks) for turn in turns]
    assert median(errors) == 0
    assert p95(errors) <= 1


async def converse(
    routed: Routed, conversations: Sequence[Conversation], turns: int, words: int, at_once: int = 2
) -> list[Turn]:
    """Let all conversations go on by so many turns, so many of them at once."""
    made: list[Turn] = []

    async def talk(mine: Sequence[Conversation]) -> None:
        for _ in range(turns):
            made.extend([await routed.turn(conversation, words) for conversation in mine])

    await asyncio.gather(*(talk(conversations[n::at_once]) for n in range(at_once)))
    return made


def conversations(seed: int, count: int, system_words: int = 1500) -> list[Conversation]:
    """Return conversations of which two each share a system prompt."""
    systems = [text_of(Random(seed * 100 + n // 2), system_words) for n in range(count)]
    return [Conversation(Random(seed * 1000 + n), systems[n]) for n in range(count)]


async def test_predictions_equal_reports_through_evictions(tmp_path: Path, servers: list[VllmServer]) -> None:
    """Eight conversations of up to 8,000 tokens need three times the KV that there is."""
    async with routing(tmp_path, servers) as routed:
        turns = await converse(routed, conversations(1, 8), turns=10, words=550)
        print(summary("evictions", turns))
    needed = sum(sorted((t.prompt_tokens for t in turns), reverse=True)[:8])
    assert needed > 1.5 * KV_TOKENS * len(servers), "otherwise nothing is evicted"
    assert max(t.prompt_tokens for t in turns) > 0.85 * LONGEST
    check_predictions(turns)
    assert sum(turn.exact for turn in turns[8:]) / len(turns[8:]) > 0.9


async def test_after_a_reset_nothing_is_predicted_before_the_next_request_goes_there(
    tmp_path: Path, servers: list[VllmServer]
) -> None:
    """vLLM tells a reset of an idle engine only with its next step; its metrics tell it at once."""
    one = servers[0]
    async with routing(tmp_path, [one]) as routed:
        conversation = Conversation(Random(2), text_of(Random(20), 2000))
        before = [await routed.turn(conversation, 300) for _ in range(3)]
        assert before[-1].cached_tokens > 2000
        one.reset_cache()
        await asyncio.sleep(3 * POLL_S)
        after = await routed.turn(conversation, 300)
        assert (after.predicted_tokens, after.cached_tokens) == (0, 0)
        again = [await routed.turn(conversation, 300) for _ in range(3)]
        print(summary("reset", [*before, after, *again]))
    check_predictions([*before, after, *again])
    assert again[-1].predicted_tokens > 2000


async def test_after_a_restart_nothing_is_predicted_and_soon_it_is_exact_again(
    tmp_path: Path, servers: list[VllmServer]
) -> None:
    one = servers[0]
    async with routing(tmp_path, [one]) as routed:
        conversation = Conversation(Random(3), text_of(Random(30), 2000))
        before = [await routed.turn(conversation, 300) for _ in range(3)]
        one.kill()
        one.start()
        await asyncio.to_thread(one.wait)
        await routed.until_exact(one.name)
        after = await routed.turn(conversation, 300)
        assert (after.predicted_tokens, after.cached_tokens) == (0, 0)
        again = [await routed.turn(conversation, 300) for _ in range(3)]
        print(summary("restart", [*before, after, *again]))
    check_predictions([*before, after, *again])
    assert again[-1].predicted_tokens > 2000


async def test_a_worker_that_comes_late_knows_what_is_cached(tmp_path: Path, servers: list[VllmServer]) -> None:
    """More prompts than fit are sent past the router; the last of them are held when it comes."""
    one = servers[0]
    random = Random(7)
    length, held = 10 * BLOCK_TOKENS + 1, 20
    prompts = [[random.randrange(3, 300) for _ in range(length)] for _ in range(2 * KV_TOKENS // length)]
    async with httpx.AsyncClient(base_url=one.url, timeout=PATIENCE_S) as client:
        for prompt in prompts:
            await completion(client, prompt)
    async with routing(tmp_path, [one]) as routed:
        for prompt in prompts[-held:]:
            answer = await completion(routed.client, prompt)
            chosen = decided(routed.plane, answer.headers["x-pointsman-request-id"])
            reported = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
            assert (chosen.exact, chosen.hit_tokens, reported) == (True, length - 1, length - 1)


async def completion(client: httpx.AsyncClient, prompt: Sequence[int]) -> httpx.Response:
    """Complete a prompt of token ids by one token."""
    body = {"model": MODEL, "prompt": list(prompt), "max_tokens": 1}
    answer = await client.post("/v1/completions", json=body, timeout=PATIENCE_S)
    answer.raise_for_status()
    return answer


async def test_messages_that_were_missed_are_asked_for_again(tmp_path: Path, servers: list[VllmServer]) -> None:
    one = servers[0]
    async with lossy_events(one.events) as lossy, routing(tmp_path, [one], **{one.name: lossy.endpoint}) as routed:
        talks = conversations(4, 3)
        turns = await converse(routed, talks, turns=2, words=300)
        for to_lose in (1, 2, 3):
            lossy.to_lose = to_lose
            turns += await converse(routed, talks, turns=1, words=300)
        turns += await converse(routed, talks, turns=6, words=300)
        print(summary(f"{lossy.lost} lost messages", turns))
        (link,) = routed.plane.links.values()
        assert routed.worker.plane.events is not None
        status = routed.worker.plane.events.status(link)
    assert lossy.lost == 6
    assert status is not None
    assert status.gaps >= 3
    assert status.lost == 0
    check_predictions(turns)
    assert turns[-1].exact


async def test_conversations_hit_more_than_in_turns(tmp_path: Path, servers: list[VllmServer]) -> None:
    """The same conversations by the product and by round robin, each from empty caches.

    Times are shown, not demanded: the model is tiny, and both servers share a few cores with everything else here.
    """
    made: dict[str, list[Turn]] = {}
    for scorer in ("round_robin", "multiplicative"):
        for server in servers:
            server.reset_cache()
        async with routing(tmp_path, servers, Policy(scorer=scorer)) as routed:
            made[scorer] = await converse(routed, conversations(5, 5), turns=8, words=450)
        print(summary(scorer, made[scorer]))
    by_turns, ours = made["round_robin"], made["multiplicative"]
    assert hit_ratio(ours) > hit_ratio(by_turns) + 0.05
    print(
        f"\nhit ratio {hit_ratio(ours):.3f} against {hit_ratio(by_turns):.3f}, mean TTFT "
        f"{1e3 * mean(t.ttft_s for t in ours):.0f} ms against {1e3 * mean(t.ttft_s for t in by_turns):.0f} ms"
    )


async def test_the_pace_of_a_real_engine_is_measured(tmp_path: Path, servers: list[VllmServer]) -> None:
    """Prompts of many lengths, none of them cached; the band is wide, for the cores are shared."""
    one = servers[0]
    async with routing(tmp_path, [one]) as routed:
        for number in range(30):
            words = 100 + 190 * (number * 7 % 30)
            await routed.turn(Conversation(Random(600 + number), text_of(Random(6000 + number), words)), 100)
        (link,) = routed.plane.links.values()
        link.pace.refit(routed.plane.loop.time())
        found, fit = link.pace.observed, link.pace.fit
    assert found is not None
    assert fit is not None
    print(
        f"\nobserved: {found.prefill_tokens_per_s:,.0f} tokens/s of prefill, decode step "
        f"{1e3 * found.step_s(sequences=1):.2f} ms alone, first token {1e3 * fit.first_token_overhead_s:.1f} ms and "
        f"its prefill; relative error {fit.relative_error:.2f}, {len(link.pace.rows)} equations"
    )
    assert 3_000 < found.prefill_tokens_per_s < 300_000
    assert 0.0002 < found.step_s(sequences=1) < 0.2
