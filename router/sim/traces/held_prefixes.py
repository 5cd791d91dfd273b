"""What engines held when a recording began, by what its requests found there.

A block that an engine reported as cached was computed by an earlier request of the recording at that instance, or was
there before. Which of the two is known for every block that was hit, so a simulation can begin with caches that are
filled as far as anybody saw. What was held and never asked for is not known, and not assumed.
"""

from collections.abc import Iterable

import msgspec

from router.sim.traces.record import BLOCK_BYTES, HeldPrefix


class SeenRequest(msgspec.Struct, frozen=True):
    """A request as it was recorded: its chain, and how many leading blocks the instance reported as cached."""

    instance: str
    chain: bytes
    hit_blocks: int


def held_at_start(seen: Iterable[SeenRequest]) -> tuple[HeldPrefix, ...]:
    """Return the prefixes that were there before the first request, those that were needed first at the end.

    :param seen: in order of arrival.
    """
    known: dict[str, set[bytes]] = {}
    held: list[HeldPrefix] = []
    for one in seen:
        here = known.setdefault(one.instance, set())
        hit = one.chain[: one.hit_blocks * BLOCK_BYTES]
        if hit and hit[-BLOCK_BYTES:] not in here:
            held.append(HeldPrefix(one.instance, hit))
        _learn(here, one.chain)
    return tuple(reversed(held))


def _learn(known: set[bytes], chain: bytes) -> None:
    """Add the blocks of a chain, deepest first: the hash of one stands for all before it."""
    for end in range(len(chain), 0, -BLOCK_BYTES):
        block = chain[end - BLOCK_BYTES : end]
        if block in known:
            return
        known.add(block)
