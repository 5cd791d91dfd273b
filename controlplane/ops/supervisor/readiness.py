"""How one knows that a child does its work: by a line it writes, by a URL that answers, or at once."""

import asyncio
from typing import Protocol

import httpx

_POLL_S = 0.1
_TIMEOUT_S = 2.0


class Readiness(Protocol):
    """One child's way to be ready; made anew for every start."""

    def observe(self, line: str) -> None:
        """See a line that the child wrote."""
        ...

    async def wait(self) -> None:
        """Return when it is ready."""
        ...


class AtOnce:
    """Ready as soon as it runs."""

    def observe(self, line: str) -> None:
        """Lines tell nothing."""

    async def wait(self) -> None:
        """Return."""


class LineSeen:
    """Ready when a line holds a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen = asyncio.Event()

    def observe(self, line: str) -> None:
        """Look for the text."""
        if self._text in line:
            self._seen.set()

    async def wait(self) -> None:
        """Return when the text was seen."""
        await self._seen.wait()


class UrlAnswers:
    """Ready when a URL answers 200."""

    def __init__(self, url: str) -> None:
        self._url = url

    def observe(self, line: str) -> None:
        """Lines tell nothing."""

    async def wait(self) -> None:
        """Ask until it answers."""
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as client:
            while not await self._answers(client):  # noqa: ASYNC110  (another process is asked)
                await asyncio.sleep(_POLL_S)

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get(self._url)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False
