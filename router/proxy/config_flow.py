"""Keeps the plane's configuration current: the last good document first, then whatever the source says."""

import asyncio
from random import Random

import structlog

from router.config import ConfigError, parse_config
from router.ports import ConfigSource, FetchedConfig
from router.proxy.last_good import LastGood
from router.proxy.plane import Plane

_log = structlog.get_logger(__name__)
FIRST_BACKOFF_S = 0.25
MOST_BACKOFF_S = 10.0


class ConfigFlow:
    """Applies documents. An invalid one is refused with its reasons, and what was in force stays."""

    def __init__(self, plane: Plane, source: ConfigSource, last_good: LastGood | None, rng: Random) -> None:
        self._plane = plane
        self._source = source
        self._last_good = last_good
        self._rng = rng
        self._etag: str | None = None
        self._backoff_s = FIRST_BACKOFF_S

    def restore(self) -> bool:
        """Put the last good document into force, if there is one that is still valid."""
        stored = None if self._last_good is None else self._last_good.load()
        return stored is not None and self._apply(stored)

    async def run(self) -> None:
        """Follow the source for ever."""
        while True:
            try:
                document = await self._source.next_document(self._etag)
            except OSError as error:
                _log.warning("config_source_unreachable", reason=str(error), retry_s=round(self._backoff_s, 2))
                await asyncio.sleep(self._backoff_s * self._rng.uniform(0.5, 1.0))
                self._backoff_s = min(self._backoff_s * 2, MOST_BACKOFF_S)
                continue
            self._backoff_s = FIRST_BACKOFF_S
            if document is not None:
                self.take(document)

    def take(self, document: FetchedConfig) -> None:
        """Apply a document that came, and keep it for the next start if it is good."""
        self._etag = document.etag
        if self._apply(document.body) and self._last_good is not None:
            try:
                self._last_good.store(document.body)
            except OSError as error:
                _log.error("config_not_stored", reason=str(error))

    def _apply(self, body: bytes) -> bool:
        try:
            document = parse_config(body)
            self._plane.apply(document)
        except (ConfigError, ValueError) as error:
            self._plane.config_error = str(error)
            _log.error("config_refused", reason=str(error))
            return False
        self._plane.config_error = None
        _log.info("config_applied", revision=document.revision, instances=len(document.instances))
        return True
