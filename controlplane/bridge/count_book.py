"""Adding up what snapshots count, by the hour: held for a few seconds, then written to rows."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Generic, TypeVar

from asgiref.sync import sync_to_async

from controlplane.accounts.services.usage import UsageKey, add_usage
from controlplane.policies.services.shadows import MoveKey, ShadowKey, add_shadow_counts, add_shadow_moves
from router.ports import Clock
from router.snapshot import Snapshot

WRITE_EVERY_S = 5.0
Counts = tuple[int, ...]
Key = TypeVar("Key")


class CountBook(Generic[Key]):
    """Counts that are not written yet. Belongs to one event loop.

    :param read: what a snapshot adds in some hour, as pairs of a key and counts.
    :param write: adds counts to the rows of their keys.
    """

    def __init__(
        self,
        clock: Clock,
        read: Callable[[Snapshot, datetime], Iterable[tuple[Key, Counts]]],
        write: Callable[[Mapping[Key, Counts]], None],
    ) -> None:
        self._clock = clock
        self._read = read
        self._write = write
        self._counts: dict[Key, Counts] = {}
        self._written_s = clock.monotonic_s()

    async def add(self, snapshot: Snapshot) -> None:
        """Count a snapshot in, and write what is held when it is time."""
        hour = datetime.fromtimestamp(self._clock.unix_s(), UTC).replace(minute=0, second=0, microsecond=0)
        for key, counts in self._read(snapshot, hour):
            held = self._counts.get(key)
            self._counts[key] = counts if held is None else tuple(map(sum, zip(held, counts, strict=True)))
        if self._clock.monotonic_s() - self._written_s >= WRITE_EVERY_S:
            await self.write()

    async def write(self) -> None:
        """Write what is held."""
        self._written_s = self._clock.monotonic_s()
        if self._counts:
            due, self._counts = self._counts, {}
            await sync_to_async(self._write)(due)


def usage_book(clock: Clock) -> CountBook[UsageKey]:
    """Return a book of what tenants use."""
    return CountBook(clock, _usage, add_usage)


def shadow_book(clock: Clock) -> CountBook[ShadowKey]:
    """Return a book of where shadow policies would have gone elsewhere."""
    return CountBook(clock, _shadows, add_shadow_counts)


def move_book(clock: Clock) -> CountBook[MoveKey]:
    """Return a book of which instances shadow policies would have chosen instead of which."""
    return CountBook(clock, _moves, add_shadow_moves)


def _usage(snapshot: Snapshot, hour: datetime) -> Iterable[tuple[UsageKey, Counts]]:
    for sample in snapshot.tenants:
        counts = (sample.requests, sample.refused, sample.prompt_tokens, sample.output_tokens)
        yield UsageKey(sample.tenant, sample.workload, hour), counts


def _shadows(snapshot: Snapshot, hour: datetime) -> Iterable[tuple[ShadowKey, Counts]]:
    for sample in snapshot.workloads:
        if sample.shadow_policy is not None and sample.shadow_decisions:
            key = ShadowKey(sample.name, sample.policy, sample.shadow_policy, hour)
            counts = (
                sample.shadow_decisions,
                sample.shadow_differs,
                sample.shadow_prompt_tokens,
                sample.shadow_live_hit_tokens,
                sample.shadow_hit_tokens,
                sample.shadow_live_product,
                sample.shadow_product,
            )
            yield key, counts


def _moves(snapshot: Snapshot, hour: datetime) -> Iterable[tuple[MoveKey, Counts]]:
    for sample in snapshot.workloads:
        for move in sample.shadow_moves if sample.shadow_policy is not None else ():
            key = MoveKey(sample.name, sample.policy, str(sample.shadow_policy), hour, move.live, move.shadow)
            yield key, (move.decisions,)
