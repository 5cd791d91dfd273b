"""Changes to a whole trace that keep its requests: fewer of them, or smoother arrivals."""

from itertools import groupby

import msgspec

from router.sim.traces.record import Trace, TraceRequest


def limited(trace: Trace, requests: int | None) -> Trace:
    """Return the first ``requests`` of a trace, or all for None."""
    if requests is None or requests >= len(trace.requests):
        return trace
    return msgspec.structs.replace(trace, requests=trace.requests[:requests])


def with_shorter_outputs(trace: Trace, most_tokens: int | None) -> Trace:
    """Return a trace whose answers are cut to ``most_tokens`` (>= 1), or unchanged for None."""
    if most_tokens is None:
        return trace
    requests = tuple(
        msgspec.structs.replace(request, output_tokens=max(1, min(request.output_tokens, most_tokens)))
        for request in trace.requests
    )
    provenance = f"{trace.provenance}; answers cut to {most_tokens} tokens"
    return msgspec.structs.replace(trace, requests=requests, provenance=provenance)


def spread(trace: Trace) -> Trace:
    """Spread requests with equal timestamps evenly until the next timestamp, in their order.

    Some recorders write arrivals in batches every few seconds; replayed as they are, they are bursts that never were.
    """
    if len({request.arrival_s for request in trace.requests}) == len(trace.requests):
        return trace
    groups = [list(group) for _, group in groupby(trace.requests, key=lambda request: request.arrival_s)]
    requests: list[TraceRequest] = []
    gap_s = 0.0
    for position, group in enumerate(groups):
        start_s = group[0].arrival_s
        if position + 1 < len(groups):
            gap_s = groups[position + 1][0].arrival_s - start_s
        requests += (
            msgspec.structs.replace(request, arrival_s=start_s + gap_s * i / len(group))
            for i, request in enumerate(group)
        )
    return msgspec.structs.replace(
        trace, requests=tuple(requests), provenance=f"{trace.provenance}; batches of arrivals spread evenly"
    )
