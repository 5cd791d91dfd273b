"""What the web process needs of sharing, whether there are others or not."""

from typing import Protocol

from router.snapshot import Snapshot


class Sharing(Protocol):
    """Belongs to one event loop at a time; ``whole`` may be read by any thread."""

    @property
    def whole(self) -> bool:
        """Whether nothing is missing of what other web processes hear: else what they know is unknown, not absent."""
        ...

    @property
    def hears_others(self) -> bool:
        """Whether other web processes, where there are any, are heard now."""
        ...

    async def start(self) -> None:
        """Begin to listen to the others, and return once what they heard lately is known, or cannot be."""
        ...

    async def stop(self) -> None:
        """Let go of everything."""
        ...

    async def offer(self, snapshot: Snapshot, body: bytes) -> bool:
        """Tell the others of a snapshot that was delivered here, as it came (``body``).

        :returns: False when it was delivered elsewhere before, and is to be counted there alone.
        """
        ...
