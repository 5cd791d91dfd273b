"""Reading the numerals of a page as a person sees them."""

import re
from collections.abc import Sequence

from playwright.async_api import Page

_NUMERAL = re.compile(r"\d[\d.,:]*")
_SKIPPED = "script, style, template, svg, option, kbd, code, pre, textarea, title, [hidden]"
_TEXTS = """(selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent.trim()).join(" | ")"""
_UNCOVERED = """([covered, skipped]) => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.replace(/\\s+/g, " ").trim();
    if (!/(?<![A-Za-z_\\-\\d.])\\d/.test(text) || element.closest(skipped) || !element.checkVisibility()) continue;
    if (!covered.some((selector) => element.closest(selector))) found.push(text);
  }
  return found;
}"""


def numbers_in(text: str) -> list[str]:
    """Return the numerals of a text, in order."""
    return _NUMERAL.findall(text)


async def text_of(page: Page, selector: str) -> str:
    """Return the text of everything that a selector matches."""
    return str(await page.evaluate(_TEXTS, selector))


async def uncovered(page: Page, selectors: Sequence[str]) -> list[str]:
    """Return the visible texts with numerals in them that lie in nothing that the selectors match."""
    found: list[str] = await page.evaluate(_UNCOVERED, [list(selectors), _SKIPPED])
    return found
