"""A feed for each selection that somebody looks at: people who look at the same share its frames.

What is selected comes from a browser, so there are bounds: a feed that nobody subscribes to is kept only while there
are few.
"""

from collections.abc import Callable

from controlplane.telemetry.feed import Feed
from controlplane.telemetry.selection import Selection
from router.ports import Clock

MOST_IDLE = 16


class Feeds:
    """Belongs to one event loop at a time, as feeds do."""

    def __init__(self, make_encoder: Callable[[Selection], Callable[[], str]], clock: Clock) -> None:
        self._make_encoder = make_encoder
        self._clock = clock
        self._feeds: dict[Selection, Feed] = {}

    def of(self, selection: Selection) -> Feed:
        """Return the feed of a selection."""
        feed = self._feeds.get(selection)
        if feed is None:
            self._let_go()
            feed = self._feeds[selection] = Feed(self._make_encoder(selection), self._clock)
        return feed

    @property
    def count(self) -> int:
        """How many are kept."""
        return len(self._feeds)

    def poke(self) -> None:
        """Say that something changed."""
        for feed in self._feeds.values():
            feed.poke()

    def _let_go(self) -> None:
        idle = [selection for selection, feed in self._feeds.items() if feed.subscribers == 0]
        for selection in idle[: max(0, len(idle) - MOST_IDLE + 1)]:
            del self._feeds[selection]
