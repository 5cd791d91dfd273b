"""The table of the walk leaves no page of the rail out."""

from django.urls import resolve

from dashboards.navigation import PLACES
from tests.dashboards.walk.pages import PAGES

_ID = "00000000-0000-0000-0000-000000000000"
DETAILS = {"decisions": "decision", "instances": "instance", "policies": "policy", "tenants": "tenant"}
"""Lists that are walked with one of their things open beside them."""


def test_every_place_of_the_rail_is_walked() -> None:
    walked = {resolve(page.path.format(alert=_ID, simulation=_ID)).url_name for page in PAGES}
    for place in PLACES:
        name = place.url_name.removeprefix("dashboards:")
        assert DETAILS.get(name, name) in walked, place.label


def test_every_page_has_numbers_with_sources() -> None:
    assert all(selectors for page in PAGES for _, _, selectors in page.numbers)
