"""What the router needs from outside, as Protocols; who runs it supplies them.

Documents cross these seams as bytes, so that a transport never needs to know their shape.
"""

from typing import Protocol


class Clock(Protocol):
    """Time, as a parameter."""

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        ...

    def unix_s(self) -> float:
        """Return seconds since the epoch."""
        ...


class FetchedConfig(Protocol):
    """A configuration document and the tag to ask for the next one with."""

    @property
    def body(self) -> bytes: ...

    @property
    def etag(self) -> str: ...


class ConfigSource(Protocol):
    """Where configuration documents come from."""

    async def next_document(self, etag: str | None) -> FetchedConfig | None:
        """Wait for a document other than ``etag``; None when the wait ended without one.

        :raises OSError: when the source cannot be reached.
        """
        ...


class NotTaken(OSError):
    """A snapshot was refused: nothing of it is counted."""


class SnapshotSink(Protocol):
    """Where snapshots go."""

    async def publish(self, body: bytes) -> bytes:
        """Deliver one snapshot; return what is said to it, empty for nothing.

        :raises NotTaken: when it was refused; its counts then stay with the worker.
        :raises OSError: when nobody can say whether it was taken; it is then sent again as it is.
        """
        ...
