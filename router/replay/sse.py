"""Server-sent events, taken apart as their bytes arrive."""

_END = b"\n\n"


class EventSplitter:
    """Cuts a byte stream into events; what is not complete yet is kept for the next call."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that ``data`` completes, without their ends; comments are left out."""
        *events, self._rest = (self._rest + data).split(_END)
        return [event for event in events if event and not event.startswith(b":")]

    @property
    def pending(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._rest)
