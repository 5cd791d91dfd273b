"""The live page's past and its exports."""

import csv
import io
import time

import pytest
from django.test import Client

from controlplane.accounts.actor import SYSTEM
from controlplane.policies.services import revisions
from controlplane.telemetry import rollups
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.rollup import WorkerRollup, bucket_of_time
from dashboards.frame_csv import write_instances
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])


def test_strangers_are_sent_to_sign_in() -> None:
    for path in ("/live/past/?minutes=15", "/live/instances.csv"):
        assert Client().get(path)["Location"].startswith("/login/?next=")


def test_the_past_is_read_from_roll_ups_with_what_happened(signed_in: Client, fresh_hub: Hub) -> None:
    made, worker = WorkerRollup(worker="router-0", bucket=bucket_of_time(time.time() - 60)), FakeWorker(4, 40.0)
    for _ in range(8):
        made.add(worker.step())
    rollups.write([made])
    revisions.publish(actor=SYSTEM, name="default", message="why", expected=1, content={"b": 0.5})
    figure = signed_in.get("/live/past/", {"minutes": "15"}).json()
    counted = sum(sum(row) for row in figure["data"][0]["customdata"])
    assert counted == sum(instance.requests for instance in made.instances.values())
    marks = [annotation.get("hovertext") for annotation in figure["layout"]["annotations"]]
    assert "policy.publish: default" in marks


def test_only_spans_that_are_kept_can_be_asked_for(signed_in: Client, fresh_hub: Hub) -> None:
    for minutes in ("", "0", "7", "99999", "abc"):
        assert signed_in.get("/live/past/", {"minutes": minutes}).status_code == 400


def test_csv_holds_every_instance(signed_in: Client, fresh_hub: Hub) -> None:
    fresh_hub.accept(FakeWorker(3, 40.0).step())
    answer = signed_in.get("/live/instances.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="pointsman-instances.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [line["name"] for line in lines] == ["gpu-00", "gpu-01", "gpu-02"]
    assert all(line["score_p95"] for line in lines)


def test_a_name_is_never_a_formula(fresh_hub: Hub) -> None:
    worker = FakeWorker(1, 40.0)
    worker.instances[0].name = "=HYPERLINK(1)"
    fresh_hub.accept(worker.step())
    text = io.StringIO()
    write_instances(text, fresh_hub.frame())
    (line,) = csv.DictReader(io.StringIO(text.getvalue()))
    assert line["name"] == "'=HYPERLINK(1)"
