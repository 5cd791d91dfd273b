"""A clock that a test moves by hand."""


class HandClock:
    """A :class:`router.ports.Clock`; both readings move together."""

    def __init__(self, monotonic_s: float = 1_000.0, unix_s: float = 1_800_000_000.0) -> None:
        self._monotonic_s = monotonic_s
        self._unix_s = unix_s

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return self._monotonic_s

    def unix_s(self) -> float:
        """Return seconds since the epoch."""
        return self._unix_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._monotonic_s += seconds
        self._unix_s += seconds
