"""A real Chromium for the browser tests: an installed one, never a downloaded one."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

from tests.patience import PATIENCE_MS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW_TO_GET_ONE = (
    "no Chromium found: install one (Debian, Ubuntu: apt-get install chromium; macOS: brew install --cask chromium), "
    "or name it in POINTSMAN_CHROMIUM"
)


def chromium_path() -> str:
    """Return where Chromium is; skip the test, saying how to get one, when there is none."""
    named = os.environ.get("POINTSMAN_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(HOW_TO_GET_ONE)
    return found


@asynccontextmanager
async def running_chromium() -> AsyncIterator[Browser]:
    """Run a headless Chromium."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            await browser.close()
