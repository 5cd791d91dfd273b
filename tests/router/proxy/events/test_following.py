"""A worker that follows events: who is believed and why not, and that its predictions are what engines report."""

import random
from typing import Any

import pytest

from router.kvevents.residency import Changes
from router.snapshot import Residency
from tests.router.engine.serving import call, until
from tests.router.proxy.events.stage import Stage, engine, staged

EVENTS, ESTIMATED = Residency.EVENTS, Residency.ESTIMATED


class Talkers:
    """Conversations through the router; each turn's prediction is compared with what its engine reported."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._rng = random.Random(seed)
        self._talks: list[list[dict[str, Any]]] = []
        self.errors: list[int] = []
        """In blocks."""
        self.reported = 0
        self.exact = 0

    async def turn(self, *, stream: bool = False) -> None:
        rng = self._rng
        if not self._talks or rng.random() < 0.2:
            system = f"you are assistant {rng.randrange(3)} " * 40
            self._talks = [*self._talks[-5:], [{"role": "system", "content": system}]]
        talk = rng.choice(self._talks)
        talk.append({"role": "user", "content": f"{rng.random()} " * rng.randrange(2, 60)})
        await self._stage.settled()
        answer = await self._stage.proxy.post({"model": "m", "messages": talk, "max_tokens": 40})
        assert answer.status == 200, answer.body
        predicted, exact, _ = self._stage.predicted()
        usage = answer.json["usage"]
        reported = usage["prompt_tokens_details"]["cached_tokens"]
        if exact:
            self.exact += 1
            self.errors.append(abs(predicted - reported) // 16)
        self.reported += reported > 0
        talk.append({"role": "assistant", "content": answer.json["choices"][0]["message"]["content"]})


async def test_an_instance_that_tells_its_events_is_believed_and_one_that_does_not_is_estimated() -> None:
    async with engine() as told, engine(events=None) as silent, staged(told, silent) as stage:
        await stage.exact(0)
        await until(lambda: stage.standing(1)[1] == "the engine publishes no KV events")
        assert stage.standing(0) == (EVENTS, "")
        assert stage.standing(1)[0] is ESTIMATED


async def test_predictions_are_what_engines_report_through_evictions(monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine() as one, engine() as two, staged(one, two) as stage:
        removed: list[bytes] = []
        take = stage.events.residency_changed

        def take_and_note(instance: str, rank: int, changes: Changes) -> None:
            removed.extend(filter(None, [changes.removed]))
            take(instance, rank, changes)

        monkeypatch.setattr(stage.events, "residency_changed", take_and_note)
        talkers = Talkers(stage, seed=3)
        for _ in range(60):
            await talkers.turn()
        assert talkers.exact > 40
        assert talkers.reported > 30
        assert sorted(talkers.errors)[len(talkers.errors) // 2] == 0
        assert sorted(talkers.errors)[int(0.95 * len(talkers.errors))] <= 1
        assert removed


async def test_after_a_reset_nothing_is_predicted() -> None:
    async with engine() as one, staged(one) as stage:
        body = {"model": "m", "messages": [{"role": "user", "content": "x" * 2000}], "max_tokens": 4}
        for _ in range(2):
            await stage.settled()
            await stage.proxy.post(body)
        assert stage.predicted()[:2] == (496, True)
        await call(one.port, "POST", "/reset_prefix_cache")
        await call(one.port, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 1})
        await stage.settled()
        answer = await stage.proxy.post(body)
        assert stage.predicted()[:2] == (0, True)
        assert answer.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
