"""Where the last minute's requests were placed on the score plane, thinned to what an eye can use."""

from collections import deque
from collections.abc import Iterator, Sequence

from controlplane.telemetry.traffic import WINDOW_S
from router.snapshot import ChosenPoint

PER_SNAPSHOT = 3
CAPACITY = 720


class Trail:
    """A bounded memory of choices, spread evenly over what each snapshot brought."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, ChosenPoint]] = deque(maxlen=CAPACITY)

    def add(self, at_s: float, chosen: Sequence[ChosenPoint]) -> None:
        """Keep at most ``PER_SNAPSHOT`` of the choices of a snapshot."""
        step = max(1, -(-len(chosen) // PER_SNAPSHOT))
        self._points.extend((at_s, point) for point in chosen[::step])

    def points(self, now_s: float) -> Iterator[tuple[float, ChosenPoint]]:
        """Return (age in seconds, point) of the last ``WINDOW_S`` seconds, oldest first."""
        while self._points and self._points[0][0] <= now_s - WINDOW_S:
            self._points.popleft()
        return ((now_s - at_s, point) for at_s, point in self._points)
