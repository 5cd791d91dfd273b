"""What a worker is to be asked, without a query for every snapshot."""

from asgiref.sync import sync_to_async

from controlplane.decisions.questions import any_open, open_for
from router.ports import Clock

LOOK_EVERY_S = 0.2


class Asking:
    """Looks for open questions now and then, and, while there are any, for those of the worker. One event loop's."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked_s = float("-inf")
        self._any = False

    async def for_worker(self, worker: str) -> tuple[str, ...]:
        """Return the requests that a worker is to be asked about."""
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._any = await sync_to_async(any_open)()
        return await sync_to_async(open_for)(worker) if self._any else ()
