"""The router's delayed view of the engines: metrics read periodically, known some time later.

Readings are taken when they are due, but handed to the fleet only before a decision, and only the newest one that is
known by then and says something new.
"""

from collections import deque
from collections.abc import Sequence

from router.sim.cost import PS_PER_S, to_ps, to_s
from router.sim.node import Node
from router.sim.scenario import Observation
from router.state.fleet import Fleet
from router.state.instance import Instance
from router.state.report import EngineReport

REPEAT_PS = 10 * PS_PER_S
"""A report that says nothing new is still handed over this often: windows of the fleet move on with reports."""

Reading = tuple[Instance, EngineReport, int]
"""An instance, what its engine said, and our bookings there at that moment."""


class Observer:
    """Reads all engines at multiples of the period."""

    def __init__(self, observation: Observation, fleet: Fleet) -> None:
        self._period_ps = to_ps(observation.report_period_s)
        self._delay_ps = to_ps(observation.report_delay_s)
        self._exact_queue = observation.exact_queue
        self._fleet = fleet
        self._pending: deque[tuple[int, list[Reading]]] = deque()
        self._known: dict[int, tuple[EngineReport, int]] = {}
        """By slot: the last report handed over, and when it is due again even if nothing changed."""

    def next_reading_ps(self, now_ps: int) -> int:
        """Return the first reading time after ``now_ps``."""
        return (now_ps // self._period_ps + 1) * self._period_ps

    def read(self, nodes: Sequence[tuple[Instance, Node]], now_ps: int) -> None:
        """Read every engine now."""
        readings = [
            (instance, node.report(now_ps, exact_queue=self._exact_queue), instance.own_requests)
            for instance, node in nodes
        ]
        self._pending.append((now_ps + self._delay_ps, readings))

    def deliver(self, now_ps: int) -> None:
        """Give the fleet the newest readings that are known by now."""
        pending = self._pending
        if not pending or pending[0][0] > now_ps:
            return
        while pending and pending[0][0] <= now_ps:
            known_ps, readings = pending.popleft()
        for instance, report, own_requests in readings:
            known_report, due_ps = self._known.get(instance.slot, (None, 0))
            if instance.position is None or (known_report == report and known_ps < due_ps):
                continue
            self._known[instance.slot] = (report, known_ps + REPEAT_PS)
            self._fleet.report(instance, report, to_s(known_ps), max(own_requests, instance.own_requests))

    def forget(self, instance: Instance) -> None:
        """Drop what is known and under way of an engine that restarted."""
        self._known.pop(instance.slot, None)
        for _, readings in self._pending:
            readings[:] = [reading for reading in readings if reading[0] is not instance]
