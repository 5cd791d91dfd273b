"""Where one engine process publishes: addresses as the router must use them."""

from dataclasses import dataclass

from router.config import EventDirection


@dataclass(frozen=True, slots=True)
class EventSource:
    """One publisher: an engine, or one data-parallel rank of it.

    ``events`` and ``replay`` are ZMQ endpoints (``tcp://host:port``); ``replay`` is None where missed messages cannot
    be asked for. ``topic`` is a prefix to subscribe to, empty for everything.
    """

    events: str
    replay: str | None = None
    topic: str = ""
    rank: int = 0
    direction: EventDirection = EventDirection.CONNECT
    block_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LoadSource:
    """Where one data-parallel rank pushes its load; we connect."""

    endpoint: str
    topic: str = "load"
    rank: int = 0
