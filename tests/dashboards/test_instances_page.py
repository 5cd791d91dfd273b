"""The instances pages: who sees what, registering, draining, removing."""

import gzip

import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from controlplane.accounts.actor import SYSTEM
from controlplane.api.v1.instances_serializers import InstanceSettingsSerializer
from controlplane.fleet.models import Instance
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.ranks import fold_ranks
from dashboards.forms.instance_form import InstanceForm
from router.core.instance import InstanceState
from router.snapshot import EventsSample, PaceSample, Residency
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def instance(transactional_db: None) -> Instance:
    """A registered instance that is in rotation."""
    made = registration.register(actor=SYSTEM, spec=InstanceSpec(name="gpu-7", url="http://10.0.0.7:8000"))
    Instance.objects.filter(pk=made.pk).update(state=InstanceState.READY, probe_ok=True)
    made.refresh_from_db()
    return made


def reports(hub: Hub, instance: Instance, in_flight: int) -> None:
    """Let a worker say that requests are in flight at the instance."""
    worker = FakeWorker(1, rate=200.0)
    snapshot = worker.step()
    sample = replace(
        snapshot.instances[0], id=str(instance.pk), name=instance.name, own_requests=in_flight, bs=in_flight
    )
    assert hub.accept(replace(snapshot, instances=(sample,)))
    hub.frame()


@pytest.mark.parametrize("path", ["/instances/", "/instances/+rows/", "/instances/+new/", "/instances/gpu-7/"])
def test_strangers_are_sent_to_sign_in(path: str, instance: Instance) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_the_list_shows_rows_and_what_workers_say(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    before = signed_in.get("/instances/+rows/").content.decode()
    assert "gpu-7" in before
    reports(fresh_hub, instance, in_flight=43)
    after = signed_in.get("/instances/+rows/").content.decode()
    assert '<td class="number">43</td>' not in before
    assert '<td class="number">43</td>' in after


def test_the_pace_that_was_observed_stands_beside_the_configured_one(
    signed_in: Client, instance: Instance, fresh_hub: Hub
) -> None:
    Instance.objects.filter(pk=instance.pk).update(hardware="h100")
    assert "not observed yet" in signed_in.get("/instances/gpu-7/").content.decode()
    pace = PaceSample(0.004, 2e-5, 1e-4, 2e-8, 0.0125, 40, 1234, 0.02, True)
    snapshot = FakeWorker(1).step()
    sample = replace(snapshot.instances[0], id=str(instance.pk), name=instance.name, pace=pace)
    assert fresh_hub.accept(replace(snapshot, instances=(sample,)))
    shown = signed_in.get("/instances/gpu-7/").content.decode()
    rate = 8192 / (0.004 + 8192 * 2e-5)
    assert f"{rate:,.0f} tokens/s" in shown
    assert "by 1,234 answers" in shown
    assert "12.5 ms and its prefill" in shown
    assert 'href="/api/v1/instances/gpu-7/pace/"' in shown


def test_the_pace_of_every_data_parallel_rank_is_shown(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    snapshot = FakeWorker(1).step()
    ranks = tuple(
        replace(
            snapshot.instances[0],
            id=f"{instance.pk}#{rank}",
            name=f"gpu-7#{rank}",
            pace=PaceSample(0.004, 2e-5 * (rank + 1), 1e-4, 2e-8, 0.0125, 40, 100 + rank, 0.02, rank == 0),
        )
        for rank in range(2)
    )
    assert fresh_hub.accept(fold_ranks(replace(snapshot, instances=ranks)))
    shown = signed_in.get("/instances/gpu-7/").content.decode()
    assert "by 201 answers" in shown
    for rank in range(2):
        rate = 8192 / (0.004 + 8192 * 2e-5 * (rank + 1))
        assert f"gpu-7#{rank}{'' if rank == 0 else ' <span'}" in shown
        assert f'<td class="number">{rate:,.0f}</td>' in shown
    assert "of each rank" in shown


def test_an_empty_fleet_is_taught_how_to_begin(signed_in: Client, fresh_hub: Hub) -> None:
    assert "curl -X PUT http://testserver/api/v1/instances/" in signed_in.get("/instances/").content.decode()


def test_filters_leave_what_was_asked_for(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    registration.register(actor=SYSTEM, spec=InstanceSpec(name="cpu-1", url="http://10.0.0.8:8000"))
    assert "cpu-1" not in signed_in.get("/instances/+rows/", {"q": "GPU"}).content.decode()
    ready = signed_in.get("/instances/+rows/", {"state": "ready"}).content.decode()
    assert ("gpu-7" in ready, "cpu-1" in ready) == (True, False)


def test_the_detail_says_why_a_probe_failed(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    reason = "GET /v1/models answered 503"
    Instance.objects.filter(pk=instance.pk).update(probe_ok=False, probe_reasons=[reason], probe_failures=2)
    text = signed_in.get("/instances/gpu-7/").content.decode()
    assert reason in text
    assert "failed 2 times in a row" in text
    assert "instance.register" in text, "the history is there"


def test_the_detail_says_how_residency_is_known_and_why_it_is_estimated(
    signed_in: Client, instance: Instance, fresh_hub: Hub
) -> None:
    def shown(events: EventsSample) -> str:
        snapshot = FakeWorker(1).step()
        sample = replace(snapshot.instances[0], id=str(instance.pk), name=instance.name, events=events)
        fresh_hub.accept(replace(snapshot, seq=snapshot.seq + 1 + events.checked, instances=(sample,)))
        fresh_hub.frame()
        return signed_in.get("/instances/gpu-7/").content.decode()

    exact = EventsSample(residency=Residency.EVENTS, connected=True, lag_s=0.004, blocks=1234, checked=20)
    text = shown(replace(exact, check_wrong_share=0.05, check_error_blocks=1.0))
    assert "by events" in text
    assert (">4 ms<" in text, "1,234" in text, "1 block<" in text) == (True, True, True)
    assert "5.0 % of its last 20 answers" in text
    down = EventsSample(reason="the connection to its events is down", connected=False, losses=1, last_loss="a gap")
    text = shown(replace(down, checked=21))
    assert "Residency is estimated: the connection to its events is down." in text
    assert "a gap (1 loss, 0 restarts, 0 gaps in all)" in text


def test_the_detail_shows_data_parallel_ranks_under_their_instance(
    signed_in: Client, instance: Instance, fresh_hub: Hub
) -> None:
    snapshot = FakeWorker(1).step()
    ranks = tuple(
        replace(snapshot.instances[0], id=f"{instance.pk}#{rank}", name=f"{instance.name}#{rank}", bs=40 + rank)
        for rank in range(2)
    )
    fresh_hub.accept(fold_ranks(replace(snapshot, seq=snapshot.seq + 1, instances=ranks)))
    fresh_hub.frame()
    text = signed_in.get("/instances/gpu-7/").content.decode()
    assert '<th scope="row">gpu-7#0</th><td class="number">40</td>' in text
    assert '<th scope="row">gpu-7#1</th><td class="number">41</td>' in text
    assert "<dt>BS now</dt><dd>81</dd>" in text


def test_kv_events_are_registered_by_form(signed_in: Client, fresh_hub: Hub) -> None:
    form = {"name": "gpu-8", "url": "http://10.0.0.8:8000", "role": "both", "kv_events": "tcp://10.0.0.8:5557"}
    signed_in.post("/instances/+new/", form, follow=True)
    made = Instance.objects.get(name="gpu-8")
    assert made.kv_events == {
        "endpoint": "tcp://10.0.0.8:5557",
        "replay": None,
        "topic": "",
        "direction": "connect",
    }
    refused = signed_in.post("/instances/+new/", form | {"name": "gpu-9", "kv_events": "10.0.0.8"})
    assert refused.status_code == 400
    assert "is not tcp://host:port" in refused.content.decode()


def test_data_parallel_ranks_are_registered_by_form(signed_in: Client, fresh_hub: Hub) -> None:
    form = {"name": "gpu-8", "url": "http://10.0.0.8:8000", "role": "both", "data_parallel_ranks": "4"}
    signed_in.post("/instances/+new/", form, follow=True)
    assert Instance.objects.get(name="gpu-8").ranks == 4
    refused = signed_in.post("/instances/+new/", form | {"name": "gpu-9", "data_parallel_ranks": "0"})
    assert refused.status_code == 400
    assert 'value="gpu-9"' in refused.content.decode()
    signed_in.post("/instances/+new/", form | {"name": "gpu-10", "data_parallel_ranks": ""})
    assert Instance.objects.get(name="gpu-10").data_parallel_ranks is None, "the probe counts them"


def test_the_form_has_every_setting_of_rest_or_leaves_it_on_purpose() -> None:
    left = {"labels", "lease_s", "kv_block_tokens", "kv_capacity_tokens", "authorization"}
    """For machines: what registers itself says these; the REST reference has them."""
    assert set(InstanceSettingsSerializer().fields) - left <= set(InstanceForm().fields)


def test_for_htmx_the_detail_comes_alone(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    alone = signed_in.get("/instances/gpu-7/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in alone
    assert "gpu-7" in alone


def test_an_unknown_name_is_not_found(signed_in: Client, fresh_hub: Hub) -> None:
    answer = signed_in.get("/instances/never-seen/")
    assert answer.status_code == 404
    assert "Nothing here" in answer.content.decode()


def test_registering_by_form(signed_in: Client, fresh_hub: Hub) -> None:
    form = {"name": "gpu-8", "url": "http://10.0.0.8:8000", "role": "both", "models": "a, b", "hardware": ""}
    answer = signed_in.post("/instances/+new/", form, follow=True)
    assert answer.redirect_chain == [("/instances/gpu-8/", 302)]
    assert "gpu-8 is registered and being probed." in answer.content.decode()
    made = Instance.objects.get(name="gpu-8")
    assert (made.url, made.served_models) == ("http://10.0.0.8:8000", ["a", "b"])


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"url": "ftp://10.0.0.8"}, "http"),
        ({"name": "no spaces"}, "letters"),
        ({"name": "gpu-7"}, "already an instance named gpu-7"),
        ({"url": ""}, "required"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    signed_in: Client, instance: Instance, changes: dict[str, str], fault: str
) -> None:
    form = {"name": "gpu-8", "url": "http://10.0.0.8:8000", "role": "both"} | changes
    answer = signed_in.post("/instances/+new/", form)
    assert answer.status_code == 400
    assert fault in answer.content.decode()
    assert Instance.objects.count() == 1


def test_draining_and_bringing_back(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    reports(fresh_hub, instance, in_flight=5)
    text = signed_in.post("/instances/gpu-7/drain/", follow=True).content.decode()
    instance.refresh_from_db()
    assert instance.state == InstanceState.DRAINING
    assert "<strong>5</strong> requests still running there" in text
    assert "by ada" in text, "the history says who"
    signed_in.post("/instances/gpu-7/undrain/")
    instance.refresh_from_db()
    assert instance.state == InstanceState.WARMING


def test_only_moves_that_are_possible_are_offered(signed_in: Client, instance: Instance, fresh_hub: Hub) -> None:
    def offered() -> set[str]:
        text = signed_in.get("/instances/gpu-7/").content.decode()
        return {wish for wish in ("drain", "undrain", "maintenance") if f"/instances/gpu-7/{wish}/" in text}

    assert offered() == {"drain", "maintenance"}
    signed_in.post("/instances/gpu-7/maintenance/")
    assert offered() == {"undrain"}


def test_removing_with_requests_in_flight_needs_to_be_confirmed(
    signed_in: Client, instance: Instance, fresh_hub: Hub
) -> None:
    reports(fresh_hub, instance, in_flight=5)
    refused = signed_in.post("/instances/gpu-7/remove/", follow=True).content.decode()
    assert "5 requests are in flight" in refused
    instance.refresh_from_db()
    assert instance.state == InstanceState.READY
    signed_in.post("/instances/gpu-7/remove/", {"force": "on"})
    instance.refresh_from_db()
    assert instance.state == InstanceState.REMOVED


def test_viewers_see_but_cannot_change(viewer: Client, instance: Instance, fresh_hub: Hub) -> None:
    text = viewer.get("/instances/gpu-7/").content.decode()
    assert "Your role may look, but not change instances." in text
    assert text.count(" disabled>") == 3
    for path in ("drain", "maintenance", "remove"):
        assert viewer.post(f"/instances/gpu-7/{path}/").status_code == 403
    assert viewer.post("/instances/+new/", {}).status_code == 403
    instance.refresh_from_db()
    assert instance.state == InstanceState.READY


def test_an_unknown_move_is_not_found(signed_in: Client, instance: Instance) -> None:
    assert signed_in.post("/instances/gpu-7/explode/").status_code == 404


def test_changes_need_a_post_with_a_csrf_token(signed_in: Client, instance: Instance) -> None:
    assert signed_in.get("/instances/gpu-7/drain/")["Location"] == "/instances/gpu-7/"
    instance.refresh_from_db()
    assert instance.state == InstanceState.READY
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in.cookies
    assert strict.post("/instances/gpu-7/drain/").status_code == 403


def test_the_lines_of_a_large_fleet_are_few_bytes(signed_in: Client, fresh_hub: Hub) -> None:
    now = timezone.now()
    for number in range(100):
        url = f"http://10.0.0.{number}:8000"
        Instance.objects.create(name=f"gpu-{number:03}", url=url, state_since=now, probe_due_at=now, probed_at=now)
    path = "/instances/+rows/"
    plain, packed = signed_in.get(path), signed_in.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert gzip.decompress(packed.content).count(b"<tr") == plain.content.count(b"<tr") == 100
    assert len(packed.content) < len(plain.content) / 8
    assert b"csrf" not in plain.content, "nothing secret is compressed"
