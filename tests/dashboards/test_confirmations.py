"""What cannot be taken back is asked about first, on every page."""

import re
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, expect

import dashboards
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import Tenant
from controlplane.accounts.services import tenants
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess

TEMPLATES = Path(dashboards.__file__).parent / "templates"
_FINAL = re.compile(r"<form[^>]*(?:-delete|-revoke|'remove')[^>]*>.*?</form>", re.DOTALL)
_BUTTON = re.compile(r"<button[^>]*>")
ASKS = ("data-confirm=", "hx-confirm=", "data-open-dialog=")


def templates() -> dict[str, str]:
    return {str(path.relative_to(TEMPLATES)): path.read_text() for path in TEMPLATES.rglob("*.html")}


def test_every_button_that_takes_something_away_asks_first() -> None:
    silent = [
        f"{name}: {button}"
        for name, text in templates().items()
        for button in _BUTTON.findall(text)
        if "button-danger" in button and not any(word in button for word in ASKS)
    ]
    asked_by_a_dialog_of_their_own = ["dashboards/instances/detail.html", "dashboards/shell_dialogs.html"]
    assert sorted(one.split(":")[0] for one in silent) == asked_by_a_dialog_of_their_own, silent


def test_every_form_that_takes_something_away_has_such_a_button() -> None:
    plain = [form for text in templates().values() for form in _FINAL.findall(text) if "button-danger" not in form]
    assert plain == []


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
async def test_nothing_is_taken_away_before_it_is_confirmed(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    await sync_to_async(tenants.create_tenant)(actor=SYSTEM, name="acme")
    watched = await open_page(chromium, session_cookie)
    page, asked = watched.page, watched.page.locator("#confirm")
    await page.goto(f"{web.url}/tenants/acme/")
    await page.click("button:has-text('Delete tenant')")
    await expect(asked).to_contain_text("Delete the tenant acme and its keys?")
    await expect(asked.locator("button:has-text('Cancel')")).to_be_focused()
    await watched.keep_screenshot("confirmation")
    await page.keyboard.press("Enter")
    await expect(asked).to_be_hidden()
    assert await Tenant.objects.filter(name="acme").aexists()
    await page.click("button:has-text('Delete tenant')")
    await asked.locator("button:has-text('Delete tenant')").click()
    await page.wait_for_url("**/tenants/")
    assert not await Tenant.objects.filter(name="acme").aexists()
    assert watched.complaints == []
