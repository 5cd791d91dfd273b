"""What is predicted from events is what the engine reports: conversations, evictions, a reset, a restart."""

import random
from typing import Any

import msgspec

from router.core.hardware_profiles import A100_80G
from router.core.prefix.token_chain import pack_tokens
from router.engine.instance import EngineInstance
from router.engine.kv_publisher import EventEndpoints
from router.engine.models import ServedModels
from router.kvevents.feed import Feed
from router.kvevents.self_check import SelfCheck, Trust
from tests.router.engine.serving import call, serving, until
from tests.router.kvevents.test_subscriber import ANY_PORT, HASHER, Index, discovered, reading

BLOCK = 16
SMALL = msgspec.structs.replace(A100_80G, kv_capacity_tokens=4096)
MODELS = ServedModels(("tiny",), (), 4096)


class Talker:
    """Talks to an engine, and predicts before each turn what it will report."""

    def __init__(self, feed: Feed, seed: int) -> None:
        self._feed = feed
        self._rng = random.Random(seed)
        self._talks: list[list[dict[str, Any]]] = []
        self.check = SelfCheck(tolerance_blocks=0)
        self.hits = 0

    async def turn(self, engine: EngineInstance) -> None:
        """Say something more in one of a few conversations, or begin another one."""
        if not self._talks or self._rng.random() < 0.25:
            system = f"you are assistant {self._rng.randrange(3)} " * 20
            self._talks = [*self._talks[-5:], [{"role": "system", "content": system}]]
        talk = self._rng.choice(self._talks)
        talk.append({"role": "user", "content": f"{self._rng.random()} " * self._rng.randrange(2, 30)})
        predicted, prompt = await self._predict(engine, talk)
        body = {"model": "tiny", "messages": talk, "max_tokens": 40}
        answer = (await call(engine.port, "POST", "/v1/chat/completions", body)).json
        reported = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert predicted == reported
        self.hits += reported > 0
        self.check.record("e", "tiny", predicted=predicted, reported=reported, prompt=prompt, block=BLOCK)
        talk.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})

    async def _predict(self, engine: EngineInstance, talk: list[dict[str, Any]]) -> tuple[int, int]:
        residency = self._feed.residency
        await until(lambda: self._feed.status().next_number == engine.ranks[0].published)
        assert len(residency.chains) == engine.model.cache.cached
        tokens = (await call(engine.port, "POST", "/tokenize", {"messages": talk})).json["tokens"]
        depth = residency.matched(HASHER.chain(pack_tokens(tokens), BLOCK))
        return min(depth, (len(tokens) - 1) // BLOCK) * BLOCK, len(tokens)


async def test_predictions_hold_through_evictions_a_reset_and_a_restart() -> None:
    async with reading() as (reader, _):
        async with serving(profile=SMALL, models=MODELS, events=ANY_PORT) as engine:
            source = await discovered(engine)
            feed = Feed.of("e", source, HASHER, Index())
            reader.add(feed, source)
            talker = Talker(feed, seed=11)
            for _ in range(60):
                await talker.turn(engine)
            assert talker.hits > 20
            await call(engine.port, "POST", "/reset_prefix_cache")
            await call(engine.port, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 1})
            for _ in range(10):
                await talker.turn(engine)
        await until(lambda: not feed.status().connected)
        again = EventEndpoints(source.events, source.replay or "", "kv@test")
        async with serving(profile=SMALL, models=MODELS, events=again, hash_seed=2) as engine:
            await until(lambda: feed.status().restarts == 1 and not feed.status().replaying)
            assert len(feed.residency) == 0
            for _ in range(10):
                await talker.turn(engine)
    assert talker.check.trust("e", "tiny") is Trust.GOOD
    assert (feed.status().lost, feed.status().unknown_removals, feed.status().orphans) == (0, 0, 0)
