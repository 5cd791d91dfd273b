"""The flood of events on a clock of CPU time: what requests would wait on a core of its own, however busy this machine.

One thread does what a worker does, in its order: arrivals that are there, then messages for a slice. The clock moves by
the CPU time of each, and leaps over times in which nothing is to be done. Receiving a message from its socket is not
done here; it counts with :data:`RECEIVE_NS`.
"""

import time
from collections.abc import Callable, Sequence
from random import Random

from router.bench.event_traffic import CYCLE_STEPS, STEPS_PER_S, Traffic, batches, timed
from router.kvevents.feed import Feed
from router.kvevents.subscriber import SLICE_S

RECEIVE_NS = 6_000
"""What ``recv_multipart`` and the reader's own steps take for a message; generous."""
_TURN_NS = 3_000
"""One turn of the event loop."""
_S = 1_000_000_000


class CoreOfItsOwn:
    """Runs the traffic once. Times in nanoseconds of the clock."""

    def __init__(self, traffic: Traffic, feeds: Sequence[Feed], decide: Callable[[], object]) -> None:
        self.arrival_ns: list[int] = []
        """From arrival to decision, of every request."""
        self.lag_ns: list[int] = []
        """From sending to applied, of every message."""
        self.busy_ns = 0
        self.now_ns = 0
        self._feeds = feeds
        self._decide = decide
        self._cycles = [batches(traffic, number) for number in range(traffic.publishers)]
        self._arrivals = _arrivals(traffic)
        self._messages = _messages(traffic)

    def run(self) -> None:
        """Let the traffic pass."""
        while len(self.arrival_ns) < len(self._arrivals) or len(self.lag_ns) < len(self._messages):
            before_ns = self.now_ns
            while (at_ns := self._next_arrival_ns) <= before_ns:
                self._do(self._decide)
                self.arrival_ns.append(self.now_ns - at_ns)
            slice_ns = self.now_ns
            while self._next_message_ns <= self.now_ns < slice_ns + SLICE_S * _S:
                self._apply()
            if self.now_ns == before_ns:
                self.now_ns = min(self._next_arrival_ns, self._next_message_ns)
            self.now_ns += _TURN_NS

    @property
    def _next_arrival_ns(self) -> int:
        done = len(self.arrival_ns)
        return self._arrivals[done] if done < len(self._arrivals) else 1 << 62

    @property
    def _next_message_ns(self) -> int:
        done = len(self.lag_ns)
        return self._messages[done][0] if done < len(self._messages) else 1 << 62

    def _apply(self) -> None:
        at_ns, publisher, step = self._messages[len(self.lag_ns)]
        payload = timed(self._cycles[publisher][step % CYCLE_STEPS], 0.0)
        self._do(lambda: self._feeds[publisher].live(step, payload, 0.0), RECEIVE_NS)
        self.lag_ns.append(self.now_ns - at_ns)

    def _do(self, work: Callable[[], object], more_ns: int = 0) -> None:
        """Do something; it takes the CPU time that it took, and some more that it would."""
        begin_ns = time.thread_time_ns()
        work()
        spent_ns = time.thread_time_ns() - begin_ns + more_ns
        self.now_ns += spent_ns
        self.busy_ns += spent_ns


def _messages(traffic: Traffic) -> list[tuple[int, int, int]]:
    """Return when which publisher sends which step."""
    steps = range(int(traffic.seconds * STEPS_PER_S))
    publishers = range(traffic.publishers)
    return sorted(
        (int((step + number / traffic.publishers) / STEPS_PER_S * _S), number, step)
        for step in steps
        for number in publishers
    )


def _arrivals(traffic: Traffic) -> list[int]:
    rng, at_s = Random(1), 0.0
    arrivals = []
    while at_s < traffic.seconds:
        arrivals.append(int(at_s * _S))
        at_s += rng.expovariate(traffic.requests_per_s)
    return arrivals
