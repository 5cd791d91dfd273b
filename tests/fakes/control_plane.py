"""A fake control plane: hands out documents by revision, takes snapshots in, and can be down."""

import asyncio

from router.config import ConfigDocument, dump_config
from router.snapshot import Snapshot, parse_snapshot
from tests.fakes.engine import FakeEngine, Peer, Received, http


class FakeControlPlane(FakeEngine):
    """Speaks the two paths that workers use; ``token`` is demanded."""

    def __init__(self, token: str = "secret") -> None:
        super().__init__(self._serve)
        self.token = token
        self.body = b""
        self.etag = ""
        self.snapshots: list[Snapshot] = []
        self.refusing = False
        self._changed = asyncio.Event()
        self.snapshot_came = asyncio.Event()

    def publish(self, document: ConfigDocument) -> None:
        self.publish_bytes(dump_config(document), f'"{document.revision}"')

    def publish_bytes(self, body: bytes, etag: str) -> None:
        self.body, self.etag = body, etag
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, request: Received, peer: Peer) -> None:
        if request.fields.get("authorization") != f"Bearer {self.token}":
            peer.send(http("401 Unauthorized", b"{}"))
        elif self.refusing:
            peer.send(http("503 Service Unavailable", b"{}"))
        elif request.path.startswith("/api/v1/router/config"):
            await self._config(request, peer)
        else:
            self.snapshots.append(parse_snapshot(request.body))
            self.snapshot_came.set()
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def _config(self, request: Received, peer: Peer) -> None:
        if not self.body or (request.fields.get("if-none-match") == self.etag and "wait=0" not in request.path):
            changed = asyncio.create_task(self._changed.wait())
            gone = asyncio.create_task(peer.gone.wait())
            await asyncio.wait({changed, gone}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            gone.cancel()
        if not peer.gone.is_set():
            peer.send(http("200 OK", self.body, fields=f"ETag: {self.etag}\r\n"))
