"""The lab's pages: who sees what, asking, following, uploading, drafting."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.accounts.actor import SYSTEM
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.lab import tasks
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation, Trace
from controlplane.lab.services import claims, simulations
from controlplane.policies.models import Policy
from controlplane.telemetry.hub import Hub

pytestmark = pytest.mark.django_db(transaction=True)
SMALL: dict[str, Any] = {
    "trace": "chatbot",
    "policies": ["multiplicative", "vllm"],
    "fleet": "a100-80g:2",
    "requests": 60,
}
MOONCAKE = b'{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}\n'


@pytest.fixture(autouse=True)
def no_files(fresh_hub: Hub) -> Iterator[None]:
    """Leave no trace files."""
    yield
    for folder in ("lab/traces", "recordings"):
        for path in (django_settings.DATA_DIR / folder).glob("*"):
            path.unlink()


@pytest.fixture
def ask(transactional_db: None) -> Callable[..., Simulation]:
    """Ask for a small simulation."""
    return lambda **changes: simulations.create_simulation(actor=SYSTEM, settings=SMALL | changes)


@pytest.fixture
def filled(signed_in: Client) -> dict[str, Any]:
    """What a browser would send of the form as it is."""
    initial = signed_in.get("/lab/").context["form"].initial
    return initial | {"requests": 60, "fleet": "a100-80g:2"}


@pytest.mark.parametrize("path", ["/lab/", "/lab/+rows/"])
def test_strangers_are_sent_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_an_empty_lab_teaches(signed_in: Client) -> None:
    text = signed_in.get("/lab/").content.decode()
    assert "What would another policy do?" in text
    assert "--record" in text


def test_the_form_begins_with_the_registered_fleet(signed_in: Client) -> None:
    assert signed_in.get("/lab/").context["form"].initial["fleet"] == "a100-80g:8"
    for number, hardware in enumerate(["h100", "h100", ""]):
        spec = InstanceSpec(name=f"gpu-{number}", url=f"http://10.0.0.{number + 1}:8000", hardware=hardware)
        registration.register(actor=SYSTEM, spec=spec)
    assert signed_in.get("/lab/").context["form"].initial["fleet"] == "a100-80g:1,h100:2"


def test_asking_by_the_form(signed_in: Client, filled: dict[str, Any]) -> None:
    sent = filled | {"scorers": ["vllm"], "stored": ["policy:default"], "more": "linear:L=0.5", "rate_scales": "0.5, 2"}
    answer = signed_in.post("/lab/", sent)
    made = Simulation.objects.get()
    assert answer["Location"] == f"/lab/{made.pk}/"
    assert list(made.contents) == ["vllm", "default@1", "linear:L=0.5"]
    assert made.settings["rate_scales"] == [0.5, 2.0]
    assert made.author == "ada"
    again = signed_in.get(f"/lab/?like={made.pk}").context["form"].initial
    for name in ("scorers", "stored", "more", "fleet", "requests", "rate_scales"):
        assert again[name] == sent[name], name


@pytest.mark.parametrize(
    ("changes", "field", "fault"),
    [
        ({"fleet": "abacus:2"}, "fleet", "no hardware profile"),
        ({"rate_scales": "fast"}, "rate_scales", "must be a number, not text"),
        ({"rate_scales": ","}, "rate_scales", "length of at least 1"),
        ({"scorers": []}, "more", "length of at least 1"),
        ({"more": "oracle"}, "more", "no scorer named"),
        ({"requests": ""}, "requests", "required"),
        ({"requests": 10**9}, "requests", "At most"),
        ({"trace": "poetry"}, "trace", "not one of the available choices"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    signed_in: Client, filled: dict[str, Any], changes: dict[str, Any], field: str, fault: str
) -> None:
    answer = signed_in.post("/lab/", filled | changes)
    assert answer.status_code == 400
    assert fault in answer.context["form"].errors[field][0]
    assert not Simulation.objects.exists()


def test_following_a_run_to_its_result(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask()
    here = f"/lab/{made.pk}/"
    assert "next in turn" in signed_in.get(f"{here}status/").content.decode()
    assert signed_in.get(f"{here}report.html").status_code == 404
    tasks.work()
    last = signed_in.get(f"{here}status/")
    assert (last["HX-Retarget"], last["HX-Reswap"]) == ("#detail", "innerHTML")
    text = signed_in.get(here).content.decode()
    assert 'id="figure-ttft"' in text
    assert text.count("<tr>") > 4
    assert signed_in.get(f"{here}report.json").json()["provenance"]["trace"] == "chatbot"
    report = signed_in.get(f"{here}report.html")
    assert report["Content-Disposition"].startswith("attachment")
    assert signed_in.get(f"{here}report.exe").status_code == 404


def test_a_failed_run_says_why(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask()
    claimed = claims.claim_next(1)
    assert claimed is not None
    claims.fail(claimed, "The moon was full.")
    assert "The moon was full." in signed_in.get(f"/lab/{made.pk}/").content.decode()


def test_numbers_change_with_the_rate_that_is_looked_at(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask(rate_scales=[0.5, 2.0])
    tasks.work()
    slow, fast = (signed_in.get(f"/lab/{made.pk}/", {"rate": rate}).context["shown"] for rate in ("0.5", "2.0"))
    assert (slow.view.rate, fast.view.rate) == (0.5, 2.0)
    assert slow.lines[0].values != fast.lines[0].values
    odd = signed_in.get(f"/lab/{made.pk}/", {"rate": "x", "policy": "nobody", "figure": "none", "with": "1"})
    assert odd.status_code == 200


def test_two_runs_beside_each_other(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    one, other = ask(), ask(policies=["vllm", "random"])
    tasks.work()
    tasks.work()
    lines = signed_in.get(f"/lab/{one.pk}/", {"with": str(other.pk)}).context["shown"].lines
    assert [line.label for line in lines] == ["A: multiplicative", "A: vllm", "B: vllm", "B: random"]
    assert lines[1].series == lines[2].series, "one policy, one colour"
    assert len({line.series for line in lines}) == 3


def test_cancelling_and_deleting(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask()
    text = signed_in.post(f"/lab/{made.pk}/delete/", follow=True).content.decode()
    assert "cancel it first" in text
    signed_in.post(f"/lab/{made.pk}/cancel/")
    made.refresh_from_db()
    assert made.life is State.CANCELLED
    assert "the simulation is cancelled" in signed_in.post(f"/lab/{made.pk}/cancel/", follow=True).content.decode()
    signed_in.post(f"/lab/{made.pk}/delete/")
    assert signed_in.get(f"/lab/{made.pk}/").status_code == 404


def test_drafting(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask()
    answer = signed_in.post(f"/lab/{made.pk}/draft/", {"policy": "vllm", "name": "default"})
    assert answer["Location"] == "/policies/default/"
    assert Policy.objects.get(name="default").draft == {"scorer": "vllm"}
    refused = signed_in.post(f"/lab/{made.pk}/draft/", {"policy": "vllm", "name": "no spaces"}, follow=True)
    assert "letters, digits" in refused.content.decode()


def test_uploading(signed_in: Client) -> None:
    file = SimpleUploadedFile("conv.jsonl", MOONCAKE * 3)
    answer = signed_in.post("/lab/+trace/", {"file": file}, follow=True)
    kept = Trace.objects.get()
    assert "conv.jsonl is read: 3 requests, mooncake." in answer.content.decode()
    assert answer.context["form"].initial["trace"] == str(kept.pk)
    signed_in.post(f"/lab/+trace/{kept.pk}/delete/")
    assert not Trace.objects.exists()


def test_a_broken_upload_names_its_line(signed_in: Client) -> None:
    file = SimpleUploadedFile("conv.jsonl", MOONCAKE + b"{}\n")
    text = signed_in.post("/lab/+trace/", {"file": file}, follow=True).content.decode()
    assert "conv.jsonl: Line 2: " in text
    assert not Trace.objects.exists()


def test_taking_in_a_recording(signed_in: Client) -> None:
    folder = django_settings.DATA_DIR / "recordings"
    folder.mkdir(exist_ok=True)
    request = '{"t": 0, "in": 10, "out": 2}\n'
    (folder / "router-0.jsonl").write_text('{"pointsman_recording": 1, "block_tokens": 16}\n' + 2 * request)
    assert "router-0.jsonl" in signed_in.get("/lab/").content.decode()
    signed_in.post("/lab/+trace/", {"recording": "router-0.jsonl"})
    assert Trace.objects.get().format == "recording"
    assert (
        "There is no recording" in signed_in.post("/lab/+trace/", {"recording": "../x"}, follow=True).content.decode()
    )


def test_viewers_look_and_do_not_touch(viewer: Client, ask: Callable[..., Simulation]) -> None:
    made = ask()
    assert "Your role may look at simulations, but not run them." in viewer.get("/lab/").content.decode()
    assert 'id="cancel-simulation" disabled' in viewer.get(f"/lab/{made.pk}/").content.decode()
    for path in ("cancel", "delete", "draft"):
        assert viewer.post(f"/lab/{made.pk}/{path}/").status_code == 403
    assert viewer.post("/lab/", SMALL).status_code == 403
    assert viewer.post("/lab/+trace/", {"recording": "x"}).status_code == 403


def test_what_is_named_cannot_inject(signed_in: Client, ask: Callable[..., Simulation]) -> None:
    made = ask(policies=["vllm"])
    Simulation.objects.update(name="</script><script>alert(1)</script>")
    tasks.work()
    assert "<script>alert" not in signed_in.get(f"/lab/{made.pk}/").content.decode()
