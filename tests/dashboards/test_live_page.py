"""The live page and its polled twin, as the server renders them."""

import msgspec
import pytest
from django.test import AsyncClient, Client
from msgspec.structs import replace

from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
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
