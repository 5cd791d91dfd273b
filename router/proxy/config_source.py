"""Where configuration documents come from: a control plane over HTTP (long poll), or a file."""

import asyncio
import hashlib
from pathlib import Path

import msgspec

from router.proxy.fetch import FetchFailed, FetchRequest, fetch
from router.proxy.pool import Pool

WAIT_S = 20
ANSWER_S = 10.0
"""Beyond the wait: how long the control plane may take to answer."""
FILE_POLL_S = 0.5


class Document(msgspec.Struct, frozen=True):
    """A document as it came, and the tag to ask for the next one with."""

    body: bytes
    etag: str


class ControlPlaneSource:
    """Long-polls the control plane; a document is sent when its revision is not the one that we hold."""

    def __init__(self, pool: Pool, token: str, worker: str) -> None:
        self._pool = pool
        self._fields = {
            b"Authorization": b"Bearer " + token.encode(),
            b"X-Pointsman-Worker": worker.encode(),
            b"Accept": b"application/json",
        }

    async def next_document(self, etag: str | None) -> Document | None:
        """Wait for a document other than ``etag``; None when the wait ended without one.

        :raises OSError: when the control plane cannot be reached, or refuses.
        """
        fields = dict(self._fields)
        if etag is not None:
            fields[b"If-None-Match"] = etag.encode()
        wait_s = 0 if etag is None else WAIT_S
        path = b"/api/v1/router/config?wait=%d" % wait_s
        answer = await fetch(self._pool, FetchRequest(path=path, fields=fields, limit_s=wait_s + ANSWER_S))
        if answer.status == 304:
            return None
        if answer.status != 200:
            raise FetchFailed(f"the control plane answered {answer.status} for the configuration")
        return Document(answer.body, answer.fields.get(b"etag", b"").decode("ascii", "replace"))


class FileSource:
    """Watches a file, for a worker that runs alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def next_document(self, etag: str | None) -> Document | None:
        """Wait for contents other than ``etag``; None when a while passed without.

        :raises OSError: when the file cannot be read.
        """
        for _ in range(round(WAIT_S / FILE_POLL_S)):
            body = self._path.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            if tag != etag:
                return Document(body, tag)
            await asyncio.sleep(FILE_POLL_S)
        return None
