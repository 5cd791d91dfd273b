"""Pages that cannot be shown say why, inside the frame for whoever is signed in."""

import pytest
from django.test import Client

from controlplane.telemetry.hub import Hub
from tests.dashboards.page_forms import parse

pytestmark = pytest.mark.django_db(transaction=True)


def headings(html: str) -> list[str]:
    return [one.text for one in parse(html).root.walk() if one.tag == "h1"]


@pytest.mark.parametrize("path", ["/nowhere/", "/instances/gone/", "/alerts/00000000-0000-0000-0000-000000000000/"])
def test_what_is_not_there_is_said_within_the_frame(signed_in: Client, fresh_hub: Hub, path: str) -> None:
    answer = signed_in.get(path)
    html = answer.content.decode()
    assert answer.status_code == 404
    assert headings(html) == ["Nothing here"]
    assert path in html
    assert 'aria-label="Places"' in html


def test_what_a_role_lacks_is_said_with_the_role(viewer: Client, fresh_hub: Hub) -> None:
    answer = viewer.get("/settings/")
    html = answer.content.decode()
    assert answer.status_code == 403
    assert headings(html) == ["Not allowed"]
    assert "<strong>vera</strong>, viewer" in html
    assert 'aria-label="Places"' in html


def test_nobody_who_is_not_signed_in_sees_the_frame(db: None) -> None:
    answer = Client().get("/nowhere/")
    html = answer.content.decode()
    assert answer.status_code == 404
    assert headings(html) == ["Nothing here"]
    assert 'aria-label="Places"' not in html
