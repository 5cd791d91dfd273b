"""What a trace looks like: the figures by which traces are published and generators calibrated."""

import msgspec

from router.sim.traces.record import BLOCK_BYTES, Trace


class TraceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Means over all requests. ``ideal_hit_ratio`` is the share of prompt tokens that an endless cache would hold."""

    requests: int
    requests_per_s: float
    mean_prompt_tokens: float
    mean_output_tokens: float
    ideal_hit_ratio: float


def statistics_of(trace: Trace) -> TraceStatistics:
    """Compute the figures of a trace with at least one request."""
    requests = trace.requests
    duration_s = max(request.arrival_s for request in requests) - min(request.arrival_s for request in requests)
    seen: set[bytes] = set()
    hit_tokens = 0
    for request in requests:
        blocks = request.blocks
        size = len(blocks)
        cut = _seen_bytes(blocks, seen)
        seen.update(blocks[i : i + BLOCK_BYTES] for i in range(cut, size, BLOCK_BYTES))
        hit_tokens += min(cut // BLOCK_BYTES * trace.block_tokens, request.prompt_tokens - 1)
    prompt_tokens = sum(request.prompt_tokens for request in requests)
    return TraceStatistics(
        requests=len(requests),
        requests_per_s=len(requests) / duration_s if duration_s else 0.0,
        mean_prompt_tokens=prompt_tokens / len(requests),
        mean_output_tokens=sum(request.output_tokens for request in requests) / len(requests),
        ideal_hit_ratio=hit_tokens / prompt_tokens,
    )


def _seen_bytes(blocks: bytes, seen: set[bytes]) -> int:
    """Return where the leading blocks that were seen before end; a chain is seen up to some depth and never beyond."""
    low, high = 0, len(blocks) // BLOCK_BYTES
    while low < high:
        middle = (low + high) // 2
        if blocks[middle * BLOCK_BYTES : (middle + 1) * BLOCK_BYTES] in seen:
            low = middle + 1
        else:
            high = middle
    return low * BLOCK_BYTES
