"""Preloading through a running data plane: what is kept, who may order it, what the engine gets, how it is counted."""

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from router.config import KeyConfig, PreloadConfig, TenantConfig
from router.proxy.preload.order import PRELOAD_PATH
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import Answer, Proxy, chat_body, document, proxying

KEY = "the control plane's own key"
PRELOAD = PreloadConfig(key_digest=sha256(KEY.encode()).hexdigest())
SHARED = "A system prompt that everybody shares. " * 80
"""Longer than the prefix of a class."""
INFERENCE_KEY = "pk_of_a_tenant_that_keeps_its_prompts"


def allow(proxy: Proxy, **changes: Any) -> None:
    """Put a configuration into force that allows preloading."""
    made = document(proxy.engines, 2)
    proxy.plane.apply(msgspec.structs.replace(made, **({"preload": PRELOAD} | changes)))


def body(question: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": SHARED}, {"role": "user", "content": question}]
    return chat_body(messages=messages)


async def learn(proxy: Proxy, **headers: str) -> str:
    """Send requests of one class, have it noticed and its text learnt; return its id."""
    await proxy.post(body("the very first"), **headers)
    for number in range(6):
        await proxy.post(body(f"{number} is my own secret"), **headers)
        proxy.plane.sweep(proxy.plane.loop.time() + 3.0 * (number + 1))
    (hot, *_) = proxy.plane.fleet.hot_classes()
    return hot.id


async def order(proxy: Proxy, class_id: str, engine: int, key: str = KEY) -> Answer:
    """Order a preload at an engine."""
    instance = f"id-{proxy.engines[engine].port}"
    sent = {"class_id": class_id, "instance_id": instance}
    return await proxy.post(sent, PRELOAD_PATH.decode(), Authorization=f"Bearer {key}")


def holders(proxy: Proxy, class_id: str) -> set[str]:
    (hot,) = [one for one in proxy.plane.fleet.hot_classes() if one.id == class_id]
    return set(hot.holders)


def lacking(proxy: Proxy, class_id: str) -> int:
    """Return an engine that is not expected to hold a class."""
    before = holders(proxy, class_id)
    return next(n for n, engine in enumerate(proxy.engines) if f"id-{engine.port}" not in before)


async def test_an_order_brings_the_shared_text_to_the_instance_and_nothing_else() -> None:
    async with FakeEngine() as one, FakeEngine() as other, proxying(one, other) as proxy:
        allow(proxy)
        class_id = await learn(proxy)
        target = lacking(proxy, class_id)
        answer = await order(proxy, class_id, target)
        assert answer.status == 200
        assert answer.fields["x-pointsman-instance"] == f"e{target}"
        sent = json.loads(proxy.engines[target].requests[-1].body)
        assert sent["max_tokens"] == 1
        assert sent["messages"][0]["content"] == SHARED
        assert "secret" not in json.dumps(sent)
        assert KEY not in str(proxy.engines[target].requests[-1].fields)
        assert len(holders(proxy, class_id)) == 2
        await proxy.settle()
        assert set(proxy.counters.values()) == {0}


async def test_preloads_are_counted_apart_and_are_no_arrivals() -> None:
    async with FakeEngine() as one, FakeEngine() as other, proxying(one, other) as proxy:
        allow(proxy)
        class_id = await learn(proxy)
        arrivals = proxy.plane.fleet.hotspots.arrivals
        await order(proxy, class_id, lacking(proxy, class_id))
        assert proxy.plane.fleet.hotspots.arrivals == arrivals
        assert proxy.outcomes("preload") == {"ok": 1}
        assert proxy.outcomes("default") == {"ok": 7}


async def test_an_instance_that_holds_it_all_is_left_alone() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy)
        class_id = await learn(proxy)
        before = len(one.requests)
        answer = await order(proxy, class_id, 0)
        assert (answer.status, answer.code) == (409, "held")
        assert len(one.requests) == before


async def test_only_the_control_plane_gives_orders() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        assert (await order(proxy, "00" * 8, 0)).status == 401  # it is not even allowed
        allow(proxy)
        assert (await order(proxy, "00" * 8, 0, key="somebody's")).status == 401
        refused = await proxy.post({"class_id": "00" * 8, "instance_id": "x"}, PRELOAD_PATH.decode())
        assert refused.status == 401
        assert one.requests == []


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"class_id": "00" * 8, "instance_id": "x"}, 404, "no_text"),
        ({"class_id": "zz", "instance_id": "x"}, 400, "invalid_json"),
        ({"class_id": "00", "instance_id": "x"}, 400, "invalid_json"),
        ({"instance_id": "x"}, 400, "invalid_json"),
    ],
)
async def test_orders_that_cannot_be_are_refused(sent: dict[str, str], status: int, code: str) -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy)
        answer = await proxy.post(sent, PRELOAD_PATH.decode(), Authorization=f"Bearer {KEY}")
        assert (answer.status, answer.code) == (status, code)


async def test_nothing_is_kept_where_it_is_not_allowed() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        class_id = await learn(proxy)
        allow(proxy)
        assert (await order(proxy, class_id, 0)).code == "no_text"
        await learn(proxy)
        assert (await order(proxy, class_id, 0)).code == "held"
        allow(proxy, preload=None)
        allow(proxy)
        assert (await order(proxy, class_id, 0)).code == "no_text"


async def test_a_tenant_may_keep_its_prompts_to_itself() -> None:
    key = KeyConfig(id="k", digest=sha256(INFERENCE_KEY.encode()).hexdigest(), tenant="acme")
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy, tenants=(TenantConfig(name="acme", keep_prefixes=False),), keys=(key,))
        class_id = await learn(proxy, Authorization=f"Bearer {INFERENCE_KEY}")
        assert (await order(proxy, class_id, 0)).code == "no_text"
        await learn(proxy)  # somebody else, with the same text
        assert (await order(proxy, class_id, 0)).code == "held"


async def test_a_text_that_is_too_large_is_not_kept() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy, preload=msgspec.structs.replace(PRELOAD, max_bytes=100))
        class_id = await learn(proxy)
        assert (await order(proxy, class_id, 0)).code == "no_text"


async def test_reports_say_how_much_text_is_kept() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy)
        await learn(proxy)
        (hot, *_) = proxy.plane.texts.annotated(proxy.plane.fleet.hot_classes())
        assert hot.text_bytes > len(SHARED)


async def test_users_go_first() -> None:
    async with FakeEngine() as one, proxying(one) as proxy:
        allow(proxy)
        class_id = await learn(proxy)
        instance = proxy.plane.fleet.by_id(f"id-{one.port}")
        instance.view = msgspec.structs.replace(instance.view, waiting=1)
        answer = await order(proxy, class_id, 0)
        assert answer.status == 503
        assert "retry-after" in answer.fields
