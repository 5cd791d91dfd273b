"""What a client connection needs from the worker; :mod:`router.proxy.server` implements it."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from router.proxy.deadlines import Deadlines
from router.proxy.limits import Limits
from router.proxy.wire.encode import OwnAnswer
from router.proxy.wire.head import RequestHead

if TYPE_CHECKING:
    from router.proxy.client import ClientConnection


class Service(Protocol):
    """The worker, as far as a client connection knows it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def deadlines(self) -> Deadlines: ...

    @property
    def stopping(self) -> bool: ...

    def lets_in(self) -> bool:
        """Tell whether there is a place for another client, or one can be made; count it where not."""
        ...

    def local_answer(self, head: RequestHead) -> OwnAnswer | None:
        """Answer a path of the worker's own."""
        ...

    def serve(self, client: "ClientConnection", head: RequestHead, body: bytes) -> None:
        """Begin an exchange for a whole request, and attach it to the client.

        :raises ProxyError: when the request is refused at once.
        """
        ...

    def opened(self, client: "ClientConnection") -> None:
        """A client connected."""
        ...

    def closed(self, client: "ClientConnection") -> None:
        """A client is gone."""
        ...

    def reserve(self, fresh_bytes: int, whole_bytes: int) -> bool:
        """Ask for room to hold so much more of a request of which so much has come; False when there is none."""
        ...

    def unreserve(self, held_bytes: int) -> None:
        """Give room back."""
        ...
