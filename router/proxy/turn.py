"""A request that may have to wait before it is decided: at the door until there is room, then for the batch window.

Where there is neither a limit to watch nor a window, nobody needs a turn.
"""

from typing import Protocol

from router.core.policy import Policy
from router.proxy.admission import Ticket
from router.proxy.deadlines import NEVER
from router.proxy.intake import Intake
from router.proxy.plane import Plane


class Waiter(Protocol):
    """Whose turn it is."""

    intake: Intake

    def wait_until(self, deadline_s: float) -> None:
        """Wait, until ``deadline_s`` (monotonic) at most."""
        ...

    def its_turn(self, policy: Policy) -> None:
        """Nothing stands before the decision any more; ignored by a request that has ended."""
        ...


class Turn:
    """One request on its way to its decision. The waiter lets go of it when it ends."""

    __slots__ = ("_plane", "_policy", "_ticket", "_waiter")

    def __init__(self, plane: Plane, waiter: Waiter, policy: Policy) -> None:
        self._plane = plane
        self._waiter = waiter
        self._policy = policy
        self._ticket: Ticket | None = None

    @property
    def held_blocks(self) -> int:
        """Leading blocks of the prompt at the instance that holds the most of them."""
        return max(self._plane.fleet.index.match(self._waiter.intake.chain), default=0)

    def take(self) -> None:
        """Show a ticket at the door where there is something to watch.

        :raises Overloaded: when too many wait already.
        """
        admission = self._plane.admission
        if not admission.watches:
            self.admitted()
            return
        intake = self._waiter.intake
        ticket = Ticket(self, intake.caller.tenant, intake.request.workload, intake.request.prompt_tokens)
        inside = admission.enter(ticket)
        self._ticket = ticket
        if inside:
            self.admitted()
        else:
            self._waiter.wait_until(self._plane.loop.time() + admission.wait_s)

    def admitted(self) -> None:
        """There is room: decide at once, or at the end of the window where there is one."""
        batch = self._plane.batch
        if batch.window_s:
            self._waiter.wait_until(NEVER)
            batch.add(self)
        else:
            self.decide_now()

    def decide_now(self) -> None:
        """The window is over."""
        self._waiter.its_turn(self._policy)

    def leave(self) -> None:
        """Make room for the next."""
        if self._ticket is not None:
            self._plane.admission.leave(self._ticket)
