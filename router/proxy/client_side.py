"""The client's side of an exchange, as far as an exchange knows it; :mod:`router.proxy.client` implements it."""

from typing import Protocol

from router.proxy.errors import ProxyError


class Client(Protocol):
    """Who asked."""

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays open after this answer."""
        ...

    def write(self, data: bytes) -> None:
        """Send answer bytes."""
        ...

    def refuse(self, error: ProxyError, lines: bytes) -> None:
        """Send an error of our own as the whole answer."""
        ...

    def done(self, *, reusable: bool) -> None:
        """The exchange is over; a connection that is not reusable is closed after what was written."""
        ...

    def break_off(self) -> None:
        """Close at once, so that a cut answer cannot be taken for a whole one."""
        ...
