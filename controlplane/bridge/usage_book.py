"""Adding up what tenants used, from snapshots: held for a few seconds, then written to the rows of the hour."""

from datetime import UTC, datetime

from asgiref.sync import sync_to_async

from controlplane.accounts.services.usage import Usage, UsageKey, add_usage
from router.ports import Clock
from router.snapshot import Snapshot

WRITE_EVERY_S = 5.0


class UsageBook:
    """Counts that are not written yet. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[UsageKey, Usage] = {}
        self._written_s = clock.monotonic_s()

    async def add(self, snapshot: Snapshot) -> None:
        """Count a snapshot in, and write what is held when it is time."""
        hour = datetime.fromtimestamp(self._clock.unix_s(), UTC).replace(minute=0, second=0, microsecond=0)
        for sample in snapshot.tenants:
            usage = self._counts.setdefault(UsageKey(sample.tenant, sample.workload, hour), Usage())
            usage.requests += sample.requests
            usage.refused += sample.refused
            usage.prompt_tokens += sample.prompt_tokens
            usage.output_tokens += sample.output_tokens
        if self._counts and self._clock.monotonic_s() - self._written_s >= WRITE_EVERY_S:
            await self._write()

    async def _write(self) -> None:
        counts, self._counts = self._counts, {}
        self._written_s = self._clock.monotonic_s()
        await sync_to_async(add_usage)(counts)
