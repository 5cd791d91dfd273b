"""A burst of requests that share one prefix, laid over a trace: the skew that a product of P-token and BS is blind to.

Everything is drawn from the seed. Prompts of the burst are ``shared_tokens`` that all have in common, and a part of
their own; nothing of them is in the trace below.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.sim.errors import TraceError
from router.sim.traces.record import BLOCK_BYTES, Trace, TraceRequest, mixed

_OWNER = 1 << 43
"""Above every owner that generators number blocks with."""
_OWN_BITS = 20


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """When, how many, and how long. Lengths are means in tokens, spread log-normally but for the shared prefix."""

    name: str
    start_s: float = 660.0
    """Eleven minutes into the trace."""
    duration_s: float = 180.0
    requests_per_s: float
    shared_tokens: int
    own_tokens: int
    output_tokens: int
    sigma: float = 0.5
    """Spread (of the logarithm) of what is not shared."""


def with_burst(trace: Trace, burst: Burst, seed: int) -> Trace:
    """Return the trace with the burst in it.

    :raises TraceError: when the burst has no requests, or shares less than a block.
    """
    count = round(burst.requests_per_s * burst.duration_s)
    if count < 1 or burst.shared_tokens < trace.block_tokens:
        raise TraceError(trace.name, None, f"burst {burst.name} has {count} requests that share nothing")
    rng = np.random.default_rng(seed)
    arrivals_s = burst.start_s + np.sort(rng.random(count)) * burst.duration_s
    own = _lengths(rng, burst.own_tokens, burst.sigma, count)
    outputs = _lengths(rng, burst.output_tokens, burst.sigma, count)
    added = [
        TraceRequest(
            arrival_s=float(arrivals_s[i]),
            prompt_tokens=burst.shared_tokens + int(own[i]),
            output_tokens=int(outputs[i]),
            blocks=_chain(burst.shared_tokens, burst.shared_tokens + int(own[i]), i, trace.block_tokens),
            workload=burst.name,
        )
        for i in range(count)
    ]
    return msgspec.structs.replace(
        trace,
        name=f"{trace.name}+{burst.name}",
        requests=tuple(sorted((*trace.requests, *added), key=lambda request: request.arrival_s)),
        provenance=f"{trace.provenance}; with {count} generated requests sharing {burst.shared_tokens} tokens "
        f"from second {burst.start_s:g} to {burst.start_s + burst.duration_s:g}",
    )


def _lengths(rng: np.random.Generator, mean: int, sigma: float, count: int) -> NDArray[np.int64]:
    drawn = rng.lognormal(0, sigma, count)
    return np.asarray(np.maximum(1, np.rint(drawn * (mean / drawn.mean()))), dtype=np.int64)


def _chain(shared_tokens: int, prompt_tokens: int, number: int, block_tokens: int) -> bytes:
    """Name the blocks of the shared prefix alike, and every later one after its request."""
    shared, full = shared_tokens // block_tokens, prompt_tokens // block_tokens
    ids = np.arange(full, dtype=np.uint64)
    ids[:shared] += np.uint64(_OWNER)
    ids[shared:] += np.uint64(_OWNER + ((number + 1) << _OWN_BITS))
    return mixed(ids).astype("<u8").tobytes()[: full * BLOCK_BYTES]
