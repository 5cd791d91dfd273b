"""Changes to a whole trace that keep its requests: fewer of them, or smoother arrivals."""

from itertools import groupby

import msgspec

from router.sim.traces.record import Trace, TraceRequest


def limited(trace: Trace, requests: int | None) -> Trace:
    """Return the first ``requests`` of a trace, or all for None."""
    if requests is None or requests >= len(trace.requests):
        return trace
    return msgspec.structs.replace(trace, requests=trace.requests[:requests])


def spread(trace: Trace) -> Trace:
    """Spread requests with equal timestamps evenly until the next timestamp, in their order.

    Some recorders write arrivals in batches every few seconds; replayed as they are, they are bursts that never were.
    """
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
