"""Static files are asked for again after an upgrade, and cost nothing while they are the same."""

from django.test import AsyncClient

STYLES = "/static/dashboards/css/pointsman.css"


async def test_a_browser_asks_again_and_is_told_that_nothing_changed(async_client: AsyncClient) -> None:
    first = await async_client.get(STYLES)
    assert first.status_code == 200
    assert "max-age=0" in first.headers["Cache-Control"]
    again = await async_client.get(STYLES, headers={"If-Modified-Since": first.headers["Last-Modified"]})
    assert again.status_code == 304
