"""A browser page that remembers everything it complained about."""

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.patience import PATIENCE_MS

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts" / "screenshots"
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP ${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


class WatchedPage:
    """One signed-in page in a context of its own, with its complaints."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context = context
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    async def text(self, selector: str) -> str:
        """Return the text of an element."""
        return (await self.page.text_content(selector) or "").strip()

    async def until(self, expression: str, argument: Any = None) -> None:
        """Wait until a script expression is true."""
        await self.page.wait_for_function(expression, arg=argument)

    async def overflow_px(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return int(
            await self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    async def keep_screenshot(self, name: str) -> None:
        """Save a screenshot of the whole page among the build artefacts, also of what is out of sight."""
        await self.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)


async def open_page(browser: Browser, cookie: dict[str, Any] | None, **options: Any) -> WatchedPage:
    """Open a page; ``options`` are those of a browser context (viewport, color_scheme, ...)."""
    context = await browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
    context.set_default_timeout(PATIENCE_MS)
    if cookie is not None:
        await context.add_cookies([cookie])  # type: ignore[list-item]
    await context.add_init_script(REPORT_VIOLATIONS)
    return WatchedPage(context, await context.new_page())
