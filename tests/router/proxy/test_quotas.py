"""Keys, tenants and quotas: who may ask, how much, and what is given back."""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.config import KeyConfig, TenantConfig, WorkloadConfig
from router.core.policy import Policy
from router.core.workload_match import WorkloadMatch
from router.proxy.bucket import HEARD_FOR_S
from router.proxy.errors import TooManyRequests
from router.proxy.quotas import Quotas, Reservation
from router.snapshot import OtherWorker, QuotaUse, SnapshotAnswer
from tests.fakes.engine import FakeEngine, answers_json, hangs
from tests.router.proxy.harness import Answer, Proxy, chat_body, document, proxying

KEY = "pk_live_0123456789"
USAGE = b'{"usage":{"prompt_tokens":10,"completion_tokens":5}}'


def tenant(**limits: Any) -> TenantConfig:
    return TenantConfig(name="acme", **limits)


def quota(**limits: Any) -> Quotas:
    quotas = Quotas()
    quotas.configure([tenant(**limits)], 0.0)
    return quotas


def with_keys(
    proxy: Proxy,
    *,
    tenants: Sequence[TenantConfig] = (TenantConfig(name="acme"),),
    keys: Sequence[str] = (KEY,),
    **changes: Any,
) -> None:
    """Put a configuration with these tenants into force; every key is the first tenant's."""
    assert proxy.plane.table is not None
    given_keys = tuple(KeyConfig(id=k, digest=sha256(k.encode()).hexdigest(), tenant=tenants[0].name) for k in keys)
    plain = document(proxy.engines, proxy.plane.table.revision + 1)
    proxy.plane.apply(replace(plain, tenants=tuple(tenants), keys=given_keys, **changes))


async def ask(proxy: Proxy, key: str | None = KEY, **body: Any) -> Answer:
    fields = {} if key is None else {"Authorization": f"Bearer {key}"}
    return await proxy.post(chat_body(**body), **fields)


async def test_a_key_of_ours_names_the_tenant_and_does_not_travel_on() -> None:
    async with FakeEngine(answers_json(USAGE)) as engine, proxying(engine) as proxy:
        with_keys(proxy)
        assert (await ask(proxy)).status == 200
        assert (await proxy.post(chat_body(), X_Api_Key=KEY)).status == 200
        assert not any({"authorization", "x-api-key"} & request.fields.keys() for request in engine.requests)
        counts = proxy.plane.stats.take().tenants[("acme", "default")]
        assert (counts.requests, counts.refused, counts.prompt_tokens, counts.output_tokens) == (2, 0, 20, 10)


async def test_keys_of_others_pass_unless_one_of_ours_is_required() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        with_keys(proxy)
        assert (await ask(proxy, "EMPTY")).status == 200
        assert engine.requests[0].fields["authorization"] == "Bearer EMPTY"
        assert (await ask(proxy, None)).status == 200
        with_keys(proxy, require_key=True)
        for key, code in ((None, "missing_api_key"), ("EMPTY", "invalid_api_key"), ("pk_x", "invalid_api_key")):
            answer = await ask(proxy, key)
            assert (answer.status, answer.code) == (401, code)
        assert (await ask(proxy)).status == 200
        async with proxy.client() as client:
            assert (await client.get("/v1/models")).status == 401
            assert (await client.get("/livez")).status == 200


@pytest.mark.parametrize("known", [[], [KEY]])
async def test_what_looks_like_our_key_and_is_none_is_refused(known: list[str]) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        with_keys(proxy, keys=known)
        answer = await ask(proxy, "pk_revoked")
        assert (answer.status, answer.code, answer.json["error"]["type"]) == (
            401,
            "invalid_api_key",
            "authentication_error",
        )
        assert engine.requests == []


async def test_a_revoked_or_expired_key_is_refused_from_the_next_document_on() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        with_keys(proxy)
        assert (await ask(proxy)).status == 200
        with_keys(proxy, keys=())
        assert (await ask(proxy)).status == 401
        expired = KeyConfig(id="k", digest=sha256(KEY.encode()).hexdigest(), tenant="acme", expires_unix_s=1.0)
        proxy.plane.apply(replace(document(proxy.engines, 9), tenants=(TenantConfig(name="acme"),), keys=(expired,)))
        assert (await ask(proxy)).status == 401


async def test_an_engines_own_credentials_replace_the_clients() -> None:
    async with FakeEngine() as engine, proxying(engine, authorization="Bearer engine-secret") as proxy:
        await ask(proxy, "EMPTY")
        assert engine.requests[0].head.lower().count(b"authorization:") == 1
        assert engine.requests[0].fields["authorization"] == "Bearer engine-secret"
        async with proxy.client() as client:
            assert b"engine-secret" not in (await client.get("/metrics")).body


async def test_requests_per_minute_are_limited_and_said() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        with_keys(proxy, tenants=[tenant(requests_per_minute=2)])
        first = await ask(proxy)
        assert first.fields["x-ratelimit-limit-requests"] == "2"
        assert first.fields["x-ratelimit-remaining-requests"] == "1"
        await ask(proxy)
        answer = await ask(proxy)
        assert (answer.status, answer.code, answer.json["error"]["type"]) == (
            429,
            "rate_limit_exceeded",
            "rate_limit_error",
        )
        assert 1 <= int(answer.fields["retry-after"]) <= 30
        assert answer.fields["x-ratelimit-remaining-requests"] == "0"
        assert len(engine.requests) == 2
        assert proxy.outcomes()["limited"] == 1
        assert proxy.plane.stats.take().tenants[("acme", "default")].refused == 1
        assert (await ask(proxy, "EMPTY")).status == 200


async def test_tokens_are_settled_on_what_was_used() -> None:
    async with FakeEngine(answers_json(USAGE)) as engine, proxying(engine) as proxy:
        with_keys(proxy, tenants=[tenant(tokens_per_minute=1000)])
        for _ in range(7):
            assert (await ask(proxy, max_tokens=900)).status == 200  # 903 are reserved, 15 are used
        answer = await ask(proxy, max_tokens=900)
        assert (answer.status, answer.fields["x-ratelimit-limit-tokens"]) == (429, "1000")
        assert (await ask(proxy, max_tokens=1)).status == 200


async def test_concurrency_is_given_back_however_a_request_ends() -> None:
    async with FakeEngine(hangs()) as engine, proxying(engine) as proxy:
        with_keys(proxy, tenants=[tenant(concurrent=1, tokens_per_minute=10_000)])
        async with proxy.client() as client:
            asking = asyncio.create_task(client.post(chat_body(), Authorization=f"Bearer {KEY}"))
            while not engine.requests:
                await asyncio.sleep(0)
            assert (await ask(proxy)).status == 429
            asking.cancel()
        await proxy.settle()
        proxy.plane.sweep(proxy.plane.loop.time())
        engine.default = answers_json(b"{}", "500 Internal Server Error")
        assert (await ask(proxy)).status == 500
        engine.default = answers_json(USAGE)
        assert (await ask(proxy)).status == 200
        assert proxy.plane.quotas.of("acme").concurrent == 0


async def test_workloads_are_found_by_rules_in_their_order() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        workloads = (
            WorkloadConfig(name="default", policy="default"),
            WorkloadConfig(name="acme", policy="default", match=WorkloadMatch(tenants=("acme",))),
            WorkloadConfig(name="batch", policy="default", match=WorkloadMatch(headers={"x-batch": "1*"})),
        )
        with_keys(proxy, workloads=workloads)
        await ask(proxy)
        await proxy.post(chat_body(), X_Batch="123")
        await proxy.post(chat_body(), X_Batch="2")
        await proxy.post(chat_body(), X_Batch="1", X_Pointsman_Workload="acme")
        assert {name: counts.requests for name, counts in proxy.plane.stats.take().workloads.items()} == {
            "acme": 2,
            "batch": 1,
            "default": 1,
        }


async def test_a_shadow_policy_decides_and_is_not_obeyed() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one, two) as proxy:
        workload = WorkloadConfig(name="default", policy="default", shadow_policy="rr")
        policies = (Policy(), Policy(name="rr", scorer="round_robin"))
        with_keys(proxy, policies=policies, workloads=(workload,))
        answers = [await proxy.chat("a prefix that stays where it was " * 40) for _ in range(6)]
        assert len({answer.fields["x-pointsman-instance"] for answer in answers}) == 1
        counts = proxy.plane.stats.take().workloads["default"]
        assert (counts.shadow_decisions, counts.shadow_differs) == (6, 5)
        assert sum(counts.shadow_moves.values()) == 5
        assert all(live != shadow for live, shadow in counts.shadow_moves)
        assert counts.shadow_prompt_tokens == counts.prompt_tokens
        assert counts.shadow_live_hit_tokens > counts.shadow_hit_tokens, "only the live policy goes where the prefix is"
        assert counts.shadow_live_product < counts.shadow_product


def test_a_request_larger_than_a_minute_is_let_in_when_the_bucket_is_full() -> None:
    quotas = quota(tokens_per_minute=100)
    reservation = quotas.of("acme").reserve(1000, 0.0)
    reservation.settle(500, 1.0)
    with pytest.raises(TooManyRequests):
        quotas.of("acme").reserve(1, 200.0)
    quotas.of("acme").reserve(1, 300.0)


def test_a_changed_limit_does_not_forget_what_was_used() -> None:
    quotas = quota(requests_per_minute=10)
    for _ in range(8):
        quotas.of("acme").reserve(1, 0.0)
    quotas.configure([tenant(requests_per_minute=9)], 0.0)
    quotas.of("acme").reserve(1, 0.0)
    with pytest.raises(TooManyRequests):
        quotas.of("acme").reserve(1, 0.0)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60), st.booleans(), st.floats(0, 5)), max_size=60))
def test_what_is_used_never_exceeds_what_a_minute_allows(events: list[tuple[int, int, bool, float]]) -> None:
    """Over any run: tokens settled <= the bucket, plus its refill, plus one request's worth of under-estimate each."""
    quotas = quota(tokens_per_minute=600, concurrent=5)
    now_s, used, open_ = 0.0, 0, []
    for tokens, actual, keep, wait_s in events:
        now_s += wait_s
        try:
            reservation = quotas.of("acme").reserve(tokens, now_s)
        except TooManyRequests:
            if open_:
                open_.pop().settle(0, now_s)
            continue
        if keep:
            open_.append(reservation)
        else:
            reservation.settle(min(actual, tokens), now_s)
            used += min(actual, tokens)
        assert quotas.of("acme").concurrent == len(open_) <= 5
    for reservation in open_:
        reservation.settle(0, now_s)
        reservation.settle(0, now_s)
    assert quotas.of("acme").concurrent == 0
    assert used <= 600 + now_s * 10 + 1e-6


class Shared:
    """Workers that tell each other every ``every_s`` what they have let in, on a clock of our own."""

    def __init__(self, count: int, every_s: float = 0.25, **limits: Any) -> None:
        self.workers = [quota(**limits) for _ in range(count)]
        self.every_s = every_s
        self.now_s = 0.0
        self.connected = True
        self.late: set[int] = set()
        """Workers that tell nothing, and so hear nothing."""
        self.missing: set[int] = set()
        """Workers that others are not told of."""
        self._told = [self._tell(place) for place in range(count)]
        self._speak()

    def pass_time(self, seconds: float, arrive: Callable[[float], None] = lambda now_s: None) -> None:
        """Let time pass, a turn of telling at a time; ``arrive`` is called before each."""
        ends_s = self.now_s + seconds
        while self.now_s < ends_s:
            arrive(self.now_s)
            self.now_s += self.every_s
            if self.connected:
                self._speak()

    def let_in(self, worker: int, tokens: int, tenant: str = "acme") -> Reservation | None:
        try:
            return self.workers[worker].of(tenant).reserve(tokens, self.now_s)
        except TooManyRequests:
            return None

    def burst(self, *workers: int, tokens: int = 50, times: int = 40, tenant: str = "acme") -> int:
        """Ask these workers in turn, often; return how many tokens were let in."""
        return sum(tokens * (self.let_in(worker, tokens, tenant) is not None) for worker in workers * times)

    def _tell(self, place: int, seq: int = 0) -> OtherWorker:
        return OtherWorker(worker=f"w{place}@0", is_younger=False, seq=seq, quotas=self.workers[place].uses(self.now_s))

    def _speak(self) -> None:
        for place, last in enumerate(self._told):
            if place not in self.late:
                self._told[place] = self._tell(place, last.seq + 1)
        for place, worker in enumerate(self.workers):
            if place in self.late:
                continue
            others = tuple(
                replace(told, is_younger=other > place)
                for other, told in enumerate(self._told)
                if other != place and other not in self.missing
            )
            worker.hear(SnapshotAnswer(others=others), self.now_s)


@pytest.mark.parametrize("busy", [[0], [0, 1], [0, 1, 2]])
def test_workers_keep_to_one_limit_together_however_the_traffic_falls(busy: list[int]) -> None:
    shared = Shared(3, tokens_per_minute=6_000)
    let_in = 0

    def arrive(now_s: float) -> None:
        nonlocal let_in
        for worker in busy * 20:
            let_in += 50 * (shared.let_in(worker, 50) is not None)

    shared.pass_time(600, arrive)
    allowed = 6_000 * 10 + 6_000  # ten minutes, and what the bucket held when it began
    assert allowed * 0.95 <= let_in <= allowed * 1.05


def test_a_burst_on_all_workers_at_once_is_held_to_the_limit() -> None:
    shared = Shared(4, tokens_per_minute=1_000)
    let_in = sum(50 * (shared.let_in(worker, 50) is not None) for worker in range(4) for _ in range(40))
    assert let_in <= 1_000


def test_a_silence_that_begins_in_a_burst_lets_nobody_give_away_what_others_have_given() -> None:
    shared = Shared(2, tokens_per_minute=2_000)
    shared.connected = False
    let_in = 0

    def arrive(now_s: float) -> None:
        nonlocal let_in
        let_in += shared.burst(0, 1)

    shared.pass_time(30, arrive)
    allowed = 2_000 + 1_000  # what the bucket held, and what half a minute brings
    assert allowed * 0.9 <= let_in <= allowed


@pytest.mark.parametrize("trouble", ["late", "missing"])
@pytest.mark.parametrize("silent", [{0}, {1}, {0, 1}])
def test_while_news_of_a_worker_are_late_or_missing_nobody_gives_away_its_part(trouble: str, silent: set[int]) -> None:
    shared = Shared(2, tokens_per_minute=2_000)
    shared.pass_time(1)
    getattr(shared, trouble).update(silent)
    let_in = 0

    def arrive(now_s: float) -> None:
        nonlocal let_in
        let_in += shared.burst(0, 1)

    shared.pass_time(HEARD_FOR_S - 0.5, arrive)
    shared.late.clear()
    shared.missing.clear()
    shared.pass_time(30 - HEARD_FOR_S + 0.5, arrive)
    allowed = 2_000 + 1_000
    assert allowed * 0.95 <= let_in <= allowed


def test_what_a_worker_has_let_in_is_taken_out_once_also_while_it_is_not_told_of() -> None:
    quotas, given = quota(tokens_per_minute=6_000), QuotaUse(tenant="acme", tokens=600, requests=1, concurrent=0)
    before = OtherWorker(worker="w1@0", is_younger=False, seq=1, quotas=(replace(given, tokens=0),))
    quotas.hear(SnapshotAnswer(others=(before,)), 0.0)
    quotas.hear(SnapshotAnswer(others=(replace(before, seq=2, quotas=(given,)),)), 0.1)
    for _ in range(5):
        quotas.hear(SnapshotAnswer(), 0.1)
    assert b"x-ratelimit-remaining-tokens: 5400\r\n" in quotas.of("acme").lines(0.1)


def test_a_tenant_and_a_limit_that_are_new_are_shared_from_the_first_request_on() -> None:
    shared = Shared(4, tokens_per_minute=2_000)
    for worker in shared.workers:
        worker.configure([tenant(tokens_per_minute=4_000), TenantConfig(name="new", tokens_per_minute=1_000)], 0.0)
    assert shared.burst(0, 1, 2, 3, tenant="new") == 1_000
    assert shared.burst(0, 1, 2, 3) == 4_000


def test_what_one_worker_gave_away_in_a_silence_is_not_there_after_it() -> None:
    shared = Shared(2, tokens_per_minute=6_000)
    shared.pass_time(1)
    shared.connected = False
    let_in = 0

    def arrive(now_s: float) -> None:
        nonlocal let_in
        let_in += shared.burst(0)

    shared.pass_time(30, arrive)
    assert 3_000 + 1_300 <= let_in <= 3_000 + 1_500, "its part, and its part of what half a minute brings"
    shared.connected = True
    shared.pass_time(2)
    let_in += shared.burst(0, 1)
    allowed = 6_000 + 3_200
    assert allowed * 0.8 <= let_in <= allowed


PLACES = st.sets(st.integers(0, 2))


@given(st.lists(st.tuples(PLACES, PLACES, st.integers(1, 40)), min_size=1, max_size=8))
def test_however_late_news_are_no_more_is_let_in_than_flows_in(phases: list[tuple[set[int], set[int], int]]) -> None:
    """All parts together are never more than there is."""
    shared = Shared(3, tokens_per_minute=1_200)
    let_in = 0
    for late, busy, turns in phases:

        def arrive(now_s: float, busy: set[int] = busy) -> None:
            nonlocal let_in
            let_in += shared.burst(*busy, tokens=60, times=10)

        shared.late = late
        shared.pass_time(turns * shared.every_s, arrive)
        assert let_in <= 1_200 + shared.now_s * 20


def test_what_another_worker_settles_for_less_can_be_used_here() -> None:
    shared = Shared(2, tokens_per_minute=1_000)
    first = shared.let_in(0, 500)
    assert first is not None
    assert shared.let_in(1, 500) is not None
    shared.pass_time(1)
    assert shared.let_in(1, 100) is None
    first.settle(0, shared.now_s)
    shared.pass_time(0.25)
    assert shared.let_in(1, 100) is not None


def test_requests_at_one_time_are_counted_over_all_workers() -> None:
    shared = Shared(2, concurrent=2)
    held = [shared.let_in(0, 1), shared.let_in(1, 1)]
    shared.pass_time(0.25)
    assert shared.let_in(0, 1) is None
    assert held[1] is not None
    held[1].settle(1, shared.now_s)
    shared.pass_time(0.25)
    assert shared.let_in(0, 1) is not None


def test_a_worker_that_hears_nothing_keeps_to_its_part_and_is_not_charged_for_the_silence() -> None:
    shared = Shared(2, tokens_per_minute=6_000)
    shared.connected = False
    shared.pass_time(60)
    let_in = 0

    def arrive(now_s: float) -> None:
        nonlocal let_in
        for worker in (0, 1) * 20:
            let_in += 50 * (shared.let_in(worker, 50) is not None)

    shared.pass_time(300, arrive)
    assert 6_000 * 5 * 0.95 <= let_in <= 6_000 * 6 * 1.05
    shared.connected = True
    shared.pass_time(30)
    assert shared.let_in(0, 1_400) is not None, "what was let in during the silence is not taken out again"


def test_a_worker_that_begins_later_is_not_charged_for_what_was_before_it() -> None:
    quotas = quota(tokens_per_minute=1_000)
    use = QuotaUse(tenant="acme", tokens=1_000_000, requests=900, concurrent=0)
    quotas.hear(SnapshotAnswer(others=(OtherWorker(worker="old@0", is_younger=False, quotas=(use,)),)), 1.0)
    assert quotas.of("acme").reserve(400, 1.0).tokens == 400
