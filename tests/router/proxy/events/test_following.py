"""A worker that follows events: who is believed and why not, and that its predictions are what engines report."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import pytest

from router.config import EventDirection, KvEventsConfig
from router.engine.answer import Answer
from router.engine.bodies import Usage
from router.engine.instance import ROUTES
from router.engine.kv_publisher import EventEndpoints
from router.kvevents import subscriber
from router.kvevents.residency import Changes
from router.proxy.exposition import expose
from router.snapshot import Residency
from tests.ports import free_ports
from tests.router.engine.serving import call, until
from tests.router.proxy.events.stage import Peer, Stage, engine, staged

Change = Callable[[], Awaitable[None]]
EVENTS, ESTIMATED = Residency.EVENTS, Residency.ESTIMATED
LONG = {"model": "m", "messages": [{"role": "user", "content": "x" * 2000}], "max_tokens": 4}


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


async def test_a_streamed_conversation_is_known_to_its_last_block() -> None:
    async with engine() as one, staged(one) as stage:
        talk: list[dict[str, Any]] = [{"role": "user", "content": "Grüße " * 200}]
        for turn in range(4):
            await stage.settled()
            body = {"model": "m", "messages": talk, "max_tokens": 33, "stream": True}
            answer = await stage.proxy.post({**body, "stream_options": {"include_usage": True}})
            bodies = [orjson.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
            usage = bodies[-1]["usage"]
            if turn:
                reported = usage["prompt_tokens_details"]["cached_tokens"]
                assert (reported > 300, stage.predicted()[:2]) == (True, (reported, True))
            said = "".join(c["delta"].get("content", "") for b in bodies for c in b["choices"])
            talk += [{"role": "assistant", "content": said}, {"role": "user", "content": f"and then {turn}?"}]
        await stage.events.learner.drained()
        assert stage.events.learner.counts(stage.proxy.plane.links[0]).learnt == 4


async def test_after_a_reset_nothing_is_predicted() -> None:
    async with engine() as one, staged(one) as stage:
        for _ in range(2):
            await stage.settled()
            await stage.proxy.post(LONG)
        assert stage.predicted()[:2] == (496, True)
        await call(one.port, "POST", "/reset_prefix_cache")
        await call(one.port, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 1})
        await stage.settled()
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (0, 0, True)


async def test_a_reset_that_a_poll_shows_first_voids_all_until_the_next_events() -> None:
    async with engine() as one, staged(one) as stage:
        for _ in range(2):
            await stage.settled()
            await stage.proxy.post(LONG)
        await stage.settled()
        link = stage.proxy.plane.links[0]
        assert stage.events.polled(link, was_reset=True)
        stage.proxy.plane.fleet.forget_residency(link.instance, 0.0)
        assert stage.standing(0)[0] is ESTIMATED
        assert "its cache was reset" in stage.standing(0)[1]
        await stage.proxy.post({"model": "m", "messages": [{"role": "user", "content": "y" * 2000}], "max_tokens": 4})
        await stage.settled()
        # It was no reset after all (engines may refuse): what was told before holds again.
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (496, 496, True)


async def test_resets_before_it_was_followed_do_not_hide_a_new_one() -> None:
    async with engine() as one:
        await call(one.port, "POST", "/v1/completions", {"prompt": "x" * 2000, "max_tokens": 1})
        await call(one.port, "POST", "/reset_prefix_cache")
        await call(one.port, "POST", "/v1/completions", {"prompt": "x" * 2000, "max_tokens": 1})
        async with staged(one) as stage:
            await stage.settled()
            assert stage.events.polled(stage.proxy.plane.links[0], was_reset=True)


async def test_a_reset_that_events_told_before_the_poll_is_no_news() -> None:
    async with engine() as one, staged(one) as stage:
        await stage.settled()
        stage.poller.cancel()
        await stage.proxy.post(LONG)
        await call(one.port, "POST", "/reset_prefix_cache")
        await call(one.port, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 1})
        await stage.settled()
        link = stage.proxy.plane.links[0]
        assert not stage.events.polled(link, was_reset=True)
        assert stage.standing(0) == (EVENTS, "")


async def cached_of(stage: Stage, body: dict[str, Any]) -> int:
    """Send a request and return the cached tokens that its engine reports."""
    answer = await stage.proxy.post(body)
    assert answer.status == 200, answer.body
    cached: int = answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    return cached


@asynccontextmanager
async def restartable() -> AsyncIterator[tuple[Stage, Change, Change]]:
    """Yield a stage with one engine, what stops that engine, and what starts another one behind its addresses."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        port = free_ports(3)
        endpoints = EventEndpoints(f"tcp://127.0.0.1:{port + 1}", f"tcp://127.0.0.1:{port + 2}", "kv")
        stage = await stack.enter_async_context(staged(await first.enter_async_context(engine(port, events=endpoints))))

        async def start() -> None:
            stage.engines[0] = await stack.enter_async_context(engine(port, events=endpoints, hash_seed=2))

        yield stage, first.aclose, start


async def test_after_a_restart_nothing_is_predicted_from_the_first_request_on() -> None:
    async with restartable() as (stage, stop, start):
        for _ in range(2):
            await stage.settled()
            await stage.proxy.post(LONG)
        assert stage.predicted()[:2] == (496, True)
        await stop()
        link = stage.proxy.plane.links[0]
        await until(lambda: (status := stage.events.status(link)) is not None and not status.connected)
        assert stage.proxy.plane.fleet.events.blocks_at(0) == 0
        await start()
        assert (await cached_of(stage, LONG), stage.predicted()[0]) == (0, 0)
        await stage.settled()
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (496, 496, True)


async def test_a_restart_that_events_showed_before_the_poll_is_no_news() -> None:
    async with restartable() as (stage, stop, start):
        await stage.settled()
        await stage.proxy.post(LONG)
        await stage.settled()
        stage.poller.cancel()
        await stop()
        link = stage.proxy.plane.links[0]
        await start()
        await until(lambda: (status := stage.events.status(link)) is not None and status.restarts == 1)
        await stage.proxy.post(LONG)
        await stage.settled()
        assert not stage.events.restarted(link)
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (496, 496, True)


async def test_after_a_restart_that_a_poll_shows_first_nothing_is_exact_until_all_was_told_again() -> None:
    async with engine() as one, staged(one) as stage:
        await stage.settled()
        await stage.proxy.post(LONG)
        await stage.settled()
        assert stage.events.restarted(stage.proxy.plane.links[0])
        assert stage.standing(0) == (ESTIMATED, "its past events are being asked for")
        await stage.settled()
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (496, 496, True)


async def test_a_gap_is_replayed_and_predictions_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine() as one, staged(one) as stage:
        await stage.settled()
        await stage.proxy.post(LONG)
        await stage.settled()
        receive = subscriber._Subscription.receive
        lost: list[tuple[int, bytes]] = []

        def lose_one(self: subscriber._Subscription) -> tuple[int, bytes] | None:
            message = receive(self)
            if message is not None and not lost:
                lost.append(message)
                return receive(self)
            return message

        monkeypatch.setattr(subscriber._Subscription, "receive", lose_one)
        other = {**LONG, "messages": [{"role": "user", "content": "y" * 2000}]}
        await stage.proxy.post(other)
        await stage.events.learner.drained()
        await until(lambda: bool(lost))
        await stage.proxy.post({"model": "m", "prompt": "z" * 200, "max_tokens": 1}, "/v1/completions")
        await stage.settled()
        assert (await cached_of(stage, other), *stage.predicted()[:2]) == (496, 496, True)
        status = stage.events.status(stage.proxy.plane.links[0])
        assert status is not None
        assert (status.gaps, status.lost) == (1, 0)


async def test_a_new_epoch_drops_what_was_told_and_asks_for_it_again() -> None:
    async with engine() as one, staged(one) as stage:
        await stage.settled()
        await stage.proxy.post(LONG)
        await stage.settled()
        held = stage.proxy.plane.fleet.events.blocks_at(0)
        assert held
        stage.proxy.apply([Peer(one.port)], epoch=2)  # type: ignore[list-item]
        assert stage.proxy.plane.fleet.events.blocks_at(0) == 0
        await until(lambda: stage.proxy.plane.fleet.events.blocks_at(0) == held)


async def test_feeds_go_with_their_instance() -> None:
    async with engine() as one, engine() as two, staged(one) as stage:
        await stage.exact(0)
        stage.engines[0] = two
        stage.proxy.apply([Peer(two.port)])  # type: ignore[list-item]
        slot = next(iter(stage.proxy.plane.links))
        link = stage.proxy.plane.links[slot]
        await until(lambda: stage.events.standing(link).residency is EVENTS)
        assert stage.proxy.plane.fleet.events.block_sizes == (16,)
        assert b'pointsman_instance_events_connected{instance_name="e0"} 1' in expose(stage.proxy.plane)
        stage.proxy.apply([])
        assert b"events_connected{" not in expose(stage.proxy.plane)
        await until(lambda: not stage.proxy.plane.fleet.events)


async def test_configured_endpoints_are_taken_where_the_engine_tells_none(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {path: methods for path, methods in ROUTES.items() if path != "/kv_event_sources"}
    monkeypatch.setattr("router.engine.instance.ROUTES", without)
    async with engine() as one, staged(one) as stage:
        await until(lambda: "does not tell where" in stage.standing(0)[1])
        endpoints = one.ranks[0].endpoints
        assert endpoints is not None
        told = KvEventsConfig(endpoint=endpoints.events, replay=endpoints.replay)
        stage.proxy.apply([Peer(one.port)], kv_events=told)  # type: ignore[list-item]
        await stage.exact(0)


async def test_an_endpoint_that_cannot_be_bound_is_said_to_be() -> None:
    taken = KvEventsConfig(endpoint="tcp://192.0.2.1:5557", direction=EventDirection.BIND)
    async with engine(events=None) as one, staged(one, kv_events=taken) as stage:
        await until(lambda: "cannot be subscribed to" in stage.standing(0)[1])


async def test_ranks_behind_one_address_are_estimated_with_the_reason() -> None:
    async with engine(ranks=2) as one, staged(one) as stage:
        await until(lambda: "2 data-parallel ranks" in stage.standing(0)[1])


async def test_an_engine_without_a_tokenizer_is_estimated_for_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {path: methods for path, methods in ROUTES.items() if path != "/tokenize"}
    monkeypatch.setattr("router.engine.instance.ROUTES", without)
    async with engine() as one, staged(one) as stage:
        await until(lambda: stage.standing(0) == (ESTIMATED, "texts: its /tokenize answers 404"))
        ids = {"model": "m", "prompt": list(range(500)), "max_tokens": 1}
        await stage.proxy.post(ids, "/v1/completions")
        await until(lambda: stage.proxy.plane.fleet.events.blocks_at(0) > 0)
        await stage.proxy.post(ids, "/v1/completions")
        assert stage.predicted()[0] == 496
        await stage.proxy.post(LONG)
        assert not stage.predicted()[1]


async def test_an_instance_whose_reports_differ_is_not_believed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine() as one, staged(one) as stage:
        await stage.settled()
        await stage.proxy.post(LONG)
        await stage.settled()
        monkeypatch.setattr(Answer, "usage", lambda self: Usage(500, 4, 0, 496))
        while stage.standing(0)[0] is EVENTS:
            await stage.proxy.post(LONG)
        assert "differed from what it reported" in stage.standing(0)[1]
        sample = stage.events.sample(stage.proxy.plane.links[0])
        assert (sample.disbelieved, sample.check_wrong_share) == (True, pytest.approx(1, abs=0.1))
        await stage.proxy.post(LONG)
        assert not stage.predicted()[1]
        monkeypatch.undo()
        monkeypatch.setattr(stage.events.trust, "doubted", lambda instance, now_s: False)
        await stage.exact(0)
        assert (await cached_of(stage, LONG), *stage.predicted()[:2]) == (496, 496, True)
        assert stage.events.sample(stage.proxy.plane.links[0]).checked == 1
