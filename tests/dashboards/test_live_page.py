"""The live page and its polled twin, as the server renders them."""

import msgspec
import pytest
from django.test import AsyncClient, Client
from msgspec.structs import replace

from controlplane.accounts.actor import SYSTEM
from controlplane.admission.services import set_admission
from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
from router.config import AdmissionConfig
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])


@pytest.mark.parametrize("path", ["/", "/live/frame/"])
def test_strangers_are_sent_to_sign_in(path: str, fresh_hub: Hub) -> None:
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


def test_the_page_carries_the_present_frame(signed_in: Client, fresh_hub: Hub) -> None:
    fresh_hub.accept(FakeWorker(3, 40.0).step())
    answer = signed_in.get("/")
    assert answer.status_code == 200
    text = answer.content.decode()
    document = text.split('id="first-frame">')[1].split("</script>")[0]
    assert len(msgspec.json.decode(document, type=Frame).instances) == 3


def test_names_cannot_break_out_of_the_page(signed_in: Client, fresh_hub: Hub) -> None:
    snapshot = FakeWorker(1, 40.0).step()
    name = "</script><script>alert(1)</script>"
    fresh_hub.accept(replace(snapshot, instances=(replace(snapshot.instances[0], name=name),)))
    text = signed_in.get("/").content.decode()
    assert "alert(1)</script>" not in text
    document = text.split('id="first-frame">')[1].split("</script>")[0]
    assert msgspec.json.decode(document, type=Frame).instances[0].name == name


def door_of(page: bytes) -> str:
    return page.decode().split('id="door"')[1].split("</a>")[0]


def test_the_door_is_away_while_nothing_is_limited(signed_in: Client, fresh_hub: Hub) -> None:
    fresh_hub.accept(FakeWorker(1, 40.0).step())
    assert " hidden>" in door_of(signed_in.get("/").content)


def test_who_waits_and_who_was_refused_stands_at_the_door(signed_in: Client, fresh_hub: Hub) -> None:
    snapshot = FakeWorker(1, 40.0).step()
    (one,) = snapshot.workloads
    limited = replace(one, queued=3, inside=5, refused={"queue_timeout": 2, "queue_full": 4_000})
    other = replace(one, name="other", queued=10, refused={"queue_full": 1})
    fresh_hub.accept(replace(snapshot, workloads=(limited, other)))
    shown = door_of(signed_in.get("/").content)
    assert " hidden>" not in shown
    assert "13 / 4,003" in shown
    assert "4,001 full · 2 late" in shown
    assert "3 / 4,002" in door_of(signed_in.get(f"/?workload={one.name}").content)


def test_where_instances_can_be_full_the_door_is_shown_though_nobody_waits(signed_in: Client, fresh_hub: Hub) -> None:
    set_admission(actor=SYSTEM, rule=AdmissionConfig(instance_requests=2), expected=0)
    fresh_hub.accept(FakeWorker(1, 40.0).step())
    shown = door_of(signed_in.get("/").content)
    assert " hidden>" not in shown
    assert "none refused" in shown


def test_nothing_on_the_page_is_inline(signed_in: Client, fresh_hub: Hub) -> None:
    text = signed_in.get("/").content.decode()
    assert "style=" not in text
    assert " onclick=" not in text
    assert all('src="' in tag or "application/json" in tag for tag in text.split("<script")[1:])


def test_the_rail_has_no_dead_links(signed_in: Client, fresh_hub: Hub) -> None:
    text = signed_in.get("/").content.decode()
    rail = text.split('<nav class="rail"')[1].split("</nav>")[0]
    links = [part.split('"')[0] for part in rail.split('href="')[1:]]
    assert links
    for link in links:
        assert signed_in.get(link, follow=True).status_code == 200, link


async def test_polling_gives_the_same_frame_as_the_socket(signed_in: Client, fresh_hub: Hub) -> None:
    fresh_hub.accept(FakeWorker(3, 40.0).step())
    browser = AsyncClient()
    browser.cookies = signed_in.cookies
    answer = await browser.get("/live/frame/")
    assert answer["Content-Type"] == "application/json"
    assert "no-store" in answer["Cache-Control"]
    frame = msgspec.json.decode(answer.content, type=Frame)
    assert [row.name for row in frame.instances] == ["gpu-00", "gpu-01", "gpu-02"]
