"""Which instance last served a session: a hint for the next request of it, bounded, forgotten when old."""

from collections import OrderedDict

MOST_SESSIONS = 65_536
MOST_NAME_CHARS = 256


class Sessions:
    """Slots by session; the least recently seen one makes room."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._slots: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._slots)

    def slot_of(self, session: str) -> int | None:
        """Return where a session was last served."""
        return self._slots.get(session)

    def served(self, session: str, slot: int) -> None:
        """Note where a session is served now."""
        self._slots[session] = slot
        self._slots.move_to_end(session)
        if len(self._slots) > self._most:
            self._slots.popitem(last=False)
