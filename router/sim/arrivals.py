"""Which requests arrive on their own, and which wait for the answer to another."""

from collections.abc import Iterator

from router.sim.traces.record import Trace


def opening(trace: Trace) -> Iterator[int]:
    """Yield the requests that arrive on their own (open loop), in order of time."""
    requests = trace.requests
    indices = [index for index, request in enumerate(requests) if request.think_s is None]
    indices.sort(key=lambda index: requests[index].arrival_s)
    return iter(indices)


def followers(trace: Trace) -> dict[int, int]:
    """Map each request to the one of its session that waits for its end (closed loop)."""
    last: dict[str, int] = {}
    following: dict[int, int] = {}
    for index, request in enumerate(trace.requests):
        if request.session is None:
            continue
        if request.think_s is not None and request.session in last:
            following[last[request.session]] = index
        last[request.session] = index
    return following
