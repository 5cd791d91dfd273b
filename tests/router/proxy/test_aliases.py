"""Aliases and splits, and the hint of a session."""

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.config import ConfigError, ModelAlias, ModelTarget, dump_config, parse_config
from router.proxy.aliases import rename_model, splits_of
from router.proxy.sessions import Sessions
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import Proxy, chat_body, document, proxying

CANARY = ModelAlias(name="prod", targets=(ModelTarget(model="m", weight=3), ModelTarget(model="n", weight=1)))


def with_alias(proxy: Proxy, alias: ModelAlias = CANARY) -> None:
    plain = document(proxy.engines, 5)
    one, two = plain.instances
    proxy.plane.apply(replace(plain, instances=(one, replace(two, models=("n",))), aliases=(alias,)))


async def test_an_alias_is_split_in_its_shares_and_replaced_in_the_body_alone() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        with_alias(proxy)
        body = (
            b'{ "messages": [{"role": "user", "content": "say \\u00e9 \\"model\\": 1"}], "model":"prod", "seed" : 1e3}'
        )
        for _ in range(200):
            assert (await proxy.post(body)).status == 200
        shares = Counter({"m": len(one.requests), "n": len(two.requests)})
        assert 125 <= shares["m"] <= 175
        for request in one.requests[:1] + two.requests[:1]:
            assert b'"seed":1e3' in request.body
            assert b'"content": "say \\u00e9 \\"model\\": 1"' in request.body
            assert request.fields["content-length"] == str(len(request.body))
            assert json.loads(request.body)["model"] == ("m" if request in one.requests else "n")


async def test_a_body_that_is_nested_too_deep_for_an_alias_is_refused_as_the_clients_fault() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        with_alias(proxy)
        for depth in (900, 1015, 5000):
            answer = await proxy.post(b'{"model":"prod","x":' + b"[" * depth + b"]" * depth + b"}")
            assert answer.status == (200 if depth == 900 else 400)
            assert depth == 900 or answer.code == "invalid_json"


async def test_a_session_stays_with_one_model_of_a_split() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        with_alias(proxy)
        for number in range(10):
            homes = {
                (await proxy.post({**chat_body(), "model": "prod"}, X_Pointsman_Session=f"s{number}")).fields[
                    "x-pointsman-instance"
                ]
                for _ in range(3)
            }
            assert len(homes) == 1


async def test_aliases_are_listed_as_models() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy, proxy.client() as client:
        with_alias(proxy)
        assert {card["id"] for card in (await client.get("/v1/models")).json["data"]} == {"m", "n", "prod"}


async def test_a_session_returns_to_its_instance_when_nothing_else_tells_them_apart() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        for number in range(6):
            homes = [
                (await proxy.post({"model": "m", "prompt": "x"}, "/tokenize", X_Pointsman_Session=f"s{number}")).fields[
                    "x-pointsman-instance"
                ]
                for _ in range(4)
            ]
            assert len(set(homes)) == 1
        assert len(one.requests) == len(two.requests) == 12


def test_sessions_are_bounded_and_the_oldest_is_forgotten() -> None:
    sessions = Sessions(most=3)
    for number in range(5):
        sessions.served(str(number), number)
        sessions.served("2", 2) if number >= 2 else None
    assert len(sessions) == 3
    assert [sessions.slot_of(str(number)) for number in range(5)] == [None, None, 2, 3, 4]


@pytest.mark.parametrize(
    ("alias", "fault"),
    [
        (ModelAlias(name="a", targets=()), "no target"),
        (ModelAlias(name="", targets=(ModelTarget(model="m"),)), "has no name"),
        (ModelAlias(name="a", targets=(ModelTarget(model="m"), ModelTarget(model="m"))), "target 'm' stands 2 times"),
        (ModelAlias(name="a", targets=(ModelTarget(model="m", weight=0),)), "not above 0"),
        (ModelAlias(name="a", targets=(ModelTarget(model="a"),)), "is an alias itself"),
    ],
)
def test_an_alias_that_leads_nowhere_is_refused(alias: ModelAlias, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        parse_config(dump_config(replace(document([]), aliases=(alias,))))


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=5), st.text())
def test_every_key_has_a_model_and_always_the_same(weights: list[float], key: str) -> None:
    targets = tuple(ModelTarget(model=f"m{n}", weight=weight) for n, weight in enumerate(weights))
    split = splits_of([ModelAlias(name="a", targets=targets)])["a"]
    assert split.model_of(key) == split.model_of(key)
    assert split.model_of(key) in {target.model for target in targets}


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers(-9, 9) | st.text(max_size=9), max_size=6))
def test_renaming_changes_the_model_and_nothing_else(members: dict[str, object]) -> None:
    renamed = msgspec.json.decode(rename_model(msgspec.json.encode({**members, "model": "old"}), "new"))
    assert renamed == {**members, "model": "new"}
