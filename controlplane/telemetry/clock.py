"""The machine's clock, behind the same Protocol that the router uses."""

import time


class SystemClock:
    """A :class:`router.ports.Clock` that reads the machine's time."""

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def unix_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()
