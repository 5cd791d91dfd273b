"""The worker's metrics: readable by Prometheus, bounded, true, and gone with their instance."""

from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.engine import FakeEngine, answers_json
from tests.router.proxy.harness import Proxy, chat_body, proxying

Samples = dict[str, dict[frozenset[tuple[str, str]], float]]


async def scrape(proxy: Proxy) -> Samples:
    async with proxy.client() as client:
        text = (await client.get("/metrics")).body.decode()
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            series = samples.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series
            series[labels] = sample.value
    return samples


async def test_every_request_is_counted_once_under_its_outcome() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        await proxy.chat()
        engine.scripts = [answers_json(b"{}", "400 Bad Request"), answers_json(b"{}", "500 Internal Server Error")]
        await proxy.chat()
        await proxy.chat()
        await proxy.post({**chat_body(), "model": "nope"})
        samples = await scrape(proxy)
    outcomes = {dict(labels)["outcome"]: value for labels, value in samples["pointsman_requests_total"].items()}
    assert outcomes == {"ok": 1, "client_error": 1, "upstream_error": 1, "refused": 1}
    assert sum(samples["pointsman_instance_attempts_total"].values()) == 3
    (failure,) = samples["pointsman_instance_failures_total"].items()
    assert (dict(failure[0])["kind"], failure[1]) == ("status", 1)


async def test_histograms_hold_every_answered_request_and_end_in_infinity() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        for _ in range(7):
            await proxy.chat()
        samples = await scrape(proxy)
    name = "pointsman_ttft_seconds"
    buckets = sorted((float(dict(labels)["le"]), value) for labels, value in samples[f"{name}_bucket"].items())
    assert buckets[-1] == (float("inf"), 7)
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    assert buckets[0][0] < 0.005
    assert buckets[-2][0] > 120
    assert list(samples[f"{name}_count"].values()) == [7]


async def test_series_go_with_their_instance_and_labels_are_bounded() -> None:
    async with FakeEngine() as one, FakeEngine() as two, proxying(one) as proxy:
        for number in range(50):
            await proxy.post({**chat_body(), "model": f"made-up-{number}"}, X_Pointsman_Workload=f"w{number}")
        await proxy.chat()
        proxy.apply([two])
        proxy.plane.fleet.views[0]
        samples = await scrape(proxy)
    labels = {pair for series in samples.values() for labels in series for pair in labels}
    assert {value for name, value in labels if name == "workload"} == {"default"}
    assert not [value for _, value in labels if "made-up" in value]
    assert samples["pointsman_instance_attempts_total"] == {frozenset({("instance_name", "e0")}): 0}


async def test_a_name_with_quotes_is_escaped() -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        proxy.plane.stats.fresh.workload('odd "name"\\').requests += 1
        samples = await scrape(proxy)
    assert frozenset({("workload", 'odd "name"\\')}) in samples["pointsman_prompt_tokens_total"]
