"""Who is placed now and who waits: limits of workloads, and a fleet in which every instance is full.

Requests of a workload at its limit wait for it alone; a full fleet makes everybody wait. Whenever a request ends, the
queue is asked who goes next: fairly by tenant, in tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from router.config import AdmissionConfig, ConfigDocument
from router.core.instance import ROUTABLE_STATES, InstanceView
from router.core.request import DEFAULT_WORKLOAD
from router.proxy.errors import Overloaded
from router.proxy.fair_queue import FairQueue

NOBODY = ""
"""The tenant of requests without a key."""


class Waiting(Protocol):
    """A request, as far as admission knows it."""

    def admitted(self) -> None:
        """It is its turn."""
        ...


class Ticket:
    """What a request shows at the door: its share of the queue, and its workload."""

    __slots__ = ("request", "tenant", "tokens", "workload")

    def __init__(self, request: Waiting, tenant: str | None, workload: str, tokens: int) -> None:
        self.request = request
        self.tenant = NOBODY if tenant is None else tenant
        self.workload = workload
        self.tokens = tokens


class Admission:
    """The door of one worker. ``views`` gives the fleet at the moment of asking."""

    def __init__(self, views: Callable[[], Sequence[InstanceView]]) -> None:
        self._views = views
        self._rule = AdmissionConfig()
        self._limits: Mapping[str, int] = {}
        self._inside: dict[str, int] = {}
        self._queues: dict[str, FairQueue[Ticket]] = {}
        self._pumping = False

    @property
    def watches(self) -> bool:
        """Whether there is any limit to watch; without one everybody is let in and nobody needs a ticket."""
        return self._rule.instance_requests is not None or bool(self._limits) or bool(self._queues)

    @property
    def wait_s(self) -> float:
        """The longest wait."""
        return self._rule.queue_wait_s

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return sum(map(len, self._queues.values()))

    def queued_by_workload(self) -> Mapping[str, int]:
        """Return how many requests of each workload wait."""
        return {name: len(queue) for name, queue in self._queues.items()}

    def inside(self, workload: str) -> int | None:
        """Return how many requests of a workload with a limit are being served; None of one without."""
        return self._inside.get(workload, 0) if workload in self._limits else None

    def configure(self, document: ConfigDocument) -> None:
        """Take over a configuration; who waits goes on waiting, as long as the workload exists."""
        self._rule = document.admission
        self._limits = {w.name: w.concurrent for w in document.workloads if w.concurrent is not None}
        names = {w.name for w in document.workloads}
        for name in [name for name in self._queues if name not in names]:
            gone = self._queues.pop(name)
            while (ticket := gone.pop()) is not None:
                self._queue(DEFAULT_WORKLOAD).push(ticket.tenant, ticket.tokens, ticket)
        self.pump()

    def enter(self, ticket: Ticket) -> bool:
        """Let a request in (True), or let it wait (False) until it is told that it is its turn.

        :raises Overloaded: when too many wait already.
        """
        queue = self._queue(ticket.workload)
        nobody_passed = not self.queued if self._rule.instance_requests is not None else not len(queue)
        if nobody_passed and self._has_room(ticket.workload):
            self._count_in(ticket)
            return True
        if self.queued >= self._rule.queue_requests:
            raise Overloaded(f"{self.queued} requests are waiting already", code="queue_full")
        queue.push(ticket.tenant, ticket.tokens, ticket)
        return False

    def leave(self, ticket: Ticket) -> None:
        """A request that was let in has ended, or one that waited does not wait any more."""
        queue = self._queues.get(ticket.workload)
        if queue is not None and ticket in queue:
            queue.discard(ticket)
        elif self._inside.get(ticket.workload, 0) > 0:
            self._inside[ticket.workload] -= 1
        self.pump()

    def pump(self) -> None:
        """Let in whoever's turn it is, as long as there is room."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while (ticket := self._next()) is not None:
                self._count_in(ticket)
                ticket.request.admitted()
        finally:
            self._pumping = False

    def _next(self) -> Ticket | None:
        """Take out who is next; workloads take turns."""
        for name, queue in self._queues.items():
            if len(queue) and self._has_room(name):
                self._queues[name] = self._queues.pop(name)
                return queue.pop()
        return None

    def _has_room(self, workload: str) -> bool:
        limit = self._limits.get(workload)
        if limit is not None and self._inside.get(workload, 0) >= limit:
            return False
        full = self._rule.instance_requests
        if full is None:
            return True
        taking = [view for view in self._views() if view.state in ROUTABLE_STATES and not view.ejected]
        return not taking or any(view.bs < full for view in taking)

    def _count_in(self, ticket: Ticket) -> None:
        self._inside[ticket.workload] = self._inside.get(ticket.workload, 0) + 1

    def _queue(self, workload: str) -> FairQueue[Ticket]:
        queue = self._queues.get(workload)
        if queue is None:
            queue = self._queues[workload] = FairQueue()
        return queue
