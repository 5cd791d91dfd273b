"""What a trace is, whatever file or generator it came from."""

from collections.abc import Iterable

import msgspec
import numpy as np

from router.core.request import DEFAULT_WORKLOAD

BLOCK_BYTES = 8


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request of a trace.

    ``blocks`` are packed chain hashes (8 bytes each) of the prompt's full blocks of ``Trace.block_tokens`` tokens;
    empty where the trace has none. A request with ``think_s`` is sent that many seconds after the previous answer of
    its ``session`` has ended (closed loop), any other one at ``arrival_s`` seconds after the start (open loop).
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    blocks: bytes = b""
    workload: str = DEFAULT_WORKLOAD
    session: str | None = None
    think_s: float | None = None
    hit_tokens: int | None = None
    """Tokens that the engine really had in its cache; None where the trace does not say."""


class HeldPrefix(msgspec.Struct, frozen=True):
    """The beginning of a prompt that an instance held before the first request; ``blocks`` as in requests."""

    instance: str
    blocks: bytes


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in order of arrival; those of one session stand in their order.

    ``provenance`` says in one sentence whether the numbers are recorded or generated, and what was assumed.
    """

    name: str
    format: str
    block_tokens: int
    requests: tuple[TraceRequest, ...]
    provenance: str
    held: tuple[HeldPrefix, ...] = ()
    """What caches begin with where the fleet has instances of these names; those needed first stand last."""

    @property
    def hashed(self) -> bool:
        """Whether prompts carry blocks, without which no policy can see a hit."""
        return any(request.blocks for request in self.requests)


def chain_of(ids: Iterable[int], full_blocks: int) -> bytes:
    """Pack the ids of a prompt's leading blocks as a chain of well-mixed 64-bit hashes.

    Equal ids must mean an equal prefix up to and including that block. Ids beyond ``full_blocks`` (a last, partial
    block) are left out: engines cache full blocks only.
    """
    array = np.fromiter(ids, dtype=np.uint64)[:full_blocks]
    return mixed(array).astype("<u8").tobytes()


def mixed(
    values: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    """Mix 64-bit numbers one to one (the finaliser of splitmix64), so that small ids spread over the whole range."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
