"""Instances over REST."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rest_framework.test import APIClient

from controlplane.accounts.access import Scope
from controlplane.fleet.models import Instance
from controlplane.telemetry.hub import Hub
from router.core.instance import InstanceState
from router.sim.fitting import read_profile
from router.snapshot import EventsSample, PaceSample, Residency
from tests.fakes.snapshots import FakeWorker

Caller = Callable[..., APIClient]
Register = Callable[..., Instance]
LIST = "/api/v1/instances/"
BODY = {"url": "http://10.0.0.7:8000", "hardware": "h100", "labels": {"rack": "b2"}}


def one(name: str = "gpu-7", action: str = "") -> str:
    return f"{LIST}{name}/{action}"


def busy(hub: Hub, instance: Instance, requests: int) -> None:
    """Have a worker report requests at an instance."""
    snapshot = FakeWorker(1).step()
    sample = msgspec.structs.replace(snapshot.instances[0], id=str(instance.pk), own_requests=requests)
    hub.accept(msgspec.structs.replace(snapshot, instances=(sample,)))


def test_put_makes_and_then_changes_nothing(admin: APIClient) -> None:
    first = admin.put(one(), BODY)
    again = admin.put(one(), BODY)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["state"] == "registered"
    assert first.json()["labels"] == {"rack": "b2"}


def test_the_last_slash_does_not_matter(admin: APIClient) -> None:
    assert admin.put(one().rstrip("/"), BODY).status_code == 201
    assert admin.get(LIST.rstrip("/")).json()["count"] == 1


def test_post_makes_once(admin: APIClient) -> None:
    body = BODY | {"name": "gpu-7"}
    assert admin.post(LIST, body).status_code == 201
    refused = admin.post(LIST, body)
    assert refused.status_code == 409
    assert refused.json()["code"] == "name_taken"
    assert refused.headers["Content-Type"] == "application/problem+json"


def test_an_instance_is_found_by_name_and_by_id(admin: APIClient, register: Register) -> None:
    instance = register()
    assert admin.get(one("gpu-1")).json()["id"] == str(instance.pk)
    assert admin.get(one(str(instance.pk))).json()["name"] == "gpu-1"
    missing = admin.get(one("gpu-2"))
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_faults_are_told_field_by_field(admin: APIClient) -> None:
    answer = admin.put(one(), {"url": "http://169.254.169.254", "hardware": "abacus"})
    assert answer.status_code == 400
    assert {fault["field"] for fault in answer.json()["errors"]} == {"url", "hardware"}
    answer = admin.put(one(), {"url": 7, "labels": "x"})
    assert {fault["field"] for fault in answer.json()["errors"]} == {"labels"}
    assert admin.put(one(), b"{", content_type="application/json").json()["code"] == "malformed"


def test_patch_changes_only_what_is_sent(admin: APIClient) -> None:
    admin.put(one(), BODY)
    answer = admin.patch(one(), {"spot": True})
    assert answer.status_code == 200
    assert (answer.json()["spot"], answer.json()["hardware"]) == (True, "h100")


def test_kv_event_endpoints_are_set_kept_and_taken_back(admin: APIClient) -> None:
    endpoints = {"endpoint": "tcp://10.0.0.7:5557", "replay": "tcp://10.0.0.7:5558"}
    whole = {**endpoints, "topic": "", "direction": "connect"}
    assert admin.put(one(), BODY | {"kv_events": endpoints}).json()["kv_events"] == whole
    assert admin.patch(one(), {"spot": True}).json()["kv_events"] == whole
    assert admin.patch(one(), {"kv_events": None}).json()["kv_events"] is None
    refused = admin.patch(one(), {"kv_events": {"endpoint": "tcp://*:5557"}})
    assert refused.status_code == 400
    assert {fault["field"] for fault in refused.json()["errors"]} == {"kv_events"}


def test_how_residency_is_known_is_what_workers_say(admin: APIClient, register: Register, fresh_hub: Hub) -> None:
    instance = register()
    assert admin.get(one("gpu-1")).json()["residency"] is None
    snapshot = FakeWorker(1).step()
    events = EventsSample(residency=Residency.EVENTS, connected=True, lag_s=0.002, blocks=7)
    sample = msgspec.structs.replace(snapshot.instances[0], id=str(instance.pk), events=events)
    assert fresh_hub.accept(msgspec.structs.replace(snapshot, instances=(sample,)))
    told = admin.get(one("gpu-1")).json()["residency"]
    assert (told["mode"], told["connected"], told["lag_s"], told["blocks"]) == ("events", True, 0.002, 7)


def test_models_may_be_declared_and_left_to_the_probe_again(admin: APIClient) -> None:
    declared = admin.put(one(), BODY | {"models": ["qwen"]}).json()
    assert (declared["models"], declared["models_source"]) == (["qwen"], "declared")
    assert admin.patch(one(), {"spot": True}).json()["models"] == ["qwen"]
    left = admin.patch(one(), {"models": None}).json()
    assert (left["models"], left["models_source"]) == ([], "probed")


def test_moves(admin: APIClient) -> None:
    admin.put(one(), BODY)
    Instance.objects.update(state=InstanceState.READY)
    for action, state in [("drain", "draining"), ("undrain", "warming"), ("maintenance", "maintenance")]:
        answer = admin.post(one(action=f"{action}/"), {"reason": "because"})
        assert (answer.status_code, answer.json()["state"]) == (200, state)
        assert answer.json()["state_reason"] == "because"


def test_a_spot_notice_needs_no_body(admin: APIClient) -> None:
    admin.put(one(), BODY | {"spot": True})
    answer = admin.post(one(action="preemption/"))
    assert answer.status_code == 200
    assert answer.json()["preempt_at"] is not None


def test_a_heartbeat_renews_the_lease(admin: APIClient) -> None:
    made = admin.put(one(), BODY | {"lease_s": 30}).json()
    beat = admin.post(one(action="heartbeat/")).json()
    assert beat["lease_expires_at"] > made["lease_expires_at"]
    assert beat["last_heartbeat_at"] is not None


def test_its_pace_is_told_as_a_profile_that_the_simulator_takes(
    admin: APIClient, register: Register, fresh_hub: Hub, tmp_path: Path
) -> None:
    instance = register()
    early = admin.get(one("gpu-1", "pace/"))
    assert (early.status_code, early.json()["detail"]) == (404, "Too little was observed of gpu-1 yet.")
    snapshot = FakeWorker(1).step()
    pace = PaceSample(0.004, 2e-5, 1e-4, 2e-8, 0.01, 40, 60, 0.02, True)
    sample = msgspec.structs.replace(snapshot.instances[0], id=str(instance.pk), pace=pace)
    fresh_hub.accept(msgspec.structs.replace(snapshot, instances=(sample,)))
    told = admin.get(one("gpu-1", "pace/"))
    assert told.json()["decode_samples"] == 60
    file = tmp_path / "gpu-1.json"
    file.write_bytes(told.content)
    profile = read_profile(file)
    assert (profile.name, profile.t0_s) == ("observed-gpu-1", 0.004)


def test_deleting_is_refused_while_requests_are_in_flight(admin: APIClient, register: Register, fresh_hub: Hub) -> None:
    busy(fresh_hub, register(), 3)
    assert admin.get(one("gpu-1")).json()["in_flight"] == 3
    refused = admin.delete(one("gpu-1"))
    assert refused.status_code == 409
    assert (refused.json()["code"], refused.json()["in_flight"]) == ("requests_in_flight", 3)
    assert admin.delete(one("gpu-1") + "?force=maybe").status_code == 400
    assert admin.delete(one("gpu-1") + "?force=true").status_code == 204
    assert admin.get(one("gpu-1")).status_code == 404


def test_filters_and_orders(admin: APIClient, register: Register) -> None:
    register("a", "http://10.0.0.1", labels={"rack": "b"}, hardware="h100", models=("x",))
    register("b", "http://10.0.0.2", labels={"rack": "c"}, role="prefill")
    Instance.objects.filter(name="b").update(state=InstanceState.READY)

    def names(query: str) -> list[str]:
        return [row["name"] for row in admin.get(f"{LIST}?{query}").json()["results"]]

    assert names("") == ["a", "b"]
    assert names("ordering=-name") == ["b", "a"]
    assert names("state=ready") == ["b"]
    assert names("state=ready&state=registered") == ["a", "b"]
    assert names("label=rack=b") == ["a"]
    assert names("model=x") == ["a", "b"]
    assert names("model=y") == ["b"]
    assert names("hardware=h100") == ["a"]
    assert names("role=prefill") == ["b"]
    assert names("search=0.0.2") == ["b"]
    assert names("page_size=1&page=2") == ["b"]


@pytest.mark.parametrize("query", ["state=bogus", "ordering=url", "role=x", "label=x"])
def test_a_filter_that_cannot_be_is_refused(admin: APIClient, query: str) -> None:
    assert admin.get(f"{LIST}?{query}").json()["code"] == "invalid"


def test_a_list_costs_the_same_number_of_queries_however_long(
    admin: APIClient, register: Register, django_assert_num_queries: Callable[..., object]
) -> None:
    for number in range(3):
        register(f"gpu-{number}", f"http://10.0.0.{number + 1}")
    admin.get(LIST)
    with django_assert_num_queries(3):  # type: ignore[attr-defined]  (token, count, page)
        admin.get(LIST)
    for number in range(3, 40):
        register(f"gpu-{number}", f"http://10.0.0.{number + 1}")
    with django_assert_num_queries(3):  # type: ignore[attr-defined]
        assert len(admin.get(LIST).json()["results"]) == 40


def test_scopes_decide(caller: Caller, register: Register) -> None:
    register()
    reader, writer, nobody = caller(Scope.READ), caller(Scope.INSTANCES), APIClient()
    assert reader.get(LIST).status_code == 200
    assert reader.put(one(), BODY).status_code == 403
    assert writer.put(one(), BODY).status_code == 201
    assert writer.get(LIST).status_code == 403
    refused = nobody.get(LIST)
    assert (refused.status_code, refused.json()["code"]) == (401, "not_authenticated")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_people_use_their_session_and_need_its_csrf_token(operator_user: object) -> None:
    strict = APIClient(enforce_csrf_checks=True)
    strict.force_login(operator_user)
    assert strict.get(LIST).status_code == 200
    assert strict.put(one(), BODY).status_code == 403


def test_data_parallel_ranks_are_set_or_left_to_the_probe(admin: APIClient) -> None:
    made = admin.put(one(), {**BODY, "data_parallel_ranks": 4}).json()
    assert (made["data_parallel_ranks"], made["ranks"]) == (4, 4)
    Instance.objects.update(probed_ranks=2)
    left = admin.patch(one(), {"data_parallel_ranks": None}).json()
    assert (left["data_parallel_ranks"], left["ranks"]) == (None, 2)
    assert admin.patch(one(), {"data_parallel_ranks": 257}).status_code == 400


def test_a_patch_of_kv_events_says_them_whole(admin: APIClient) -> None:
    admin.put(one(), BODY)
    answer = admin.patch(one(), {"kv_events": {"topic": "kv"}})
    assert answer.status_code == 400
    assert "endpoint" in str(answer.json()["errors"])
