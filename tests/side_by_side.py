"""How two test processes share the suite (``pytest -n 2``): one begins with what waits, the other with what computes.

Tests of the whole product and of its pages wait for processes and browsers most of their time; the others keep a core
busy. The first process takes files from the front of the line, where the waiting ones stand, all others take from its
back, so that hardly ever two tests with many processes run at once. A file is never split: what its tests share is
made once.
"""

from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

WAITING = ("tests/e2e/", "tests/engines/", "tests/dashboards/")
"""Where tests wait most, longest first."""


def waiting_first(items: list[pytest.Item]) -> None:
    """Put tests that wait to the front, and leave everything else in the order that it has."""
    items.sort(key=lambda item: next((n for n, folder in enumerate(WAITING) if item.nodeid.startswith(folder)), 99))


class FromBothEnds(LoadFileScheduling):
    """Gives the first process files from the front of the line, and the others files from its back."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _assign_work_unit(self, node: "WorkerController") -> None:
        if node is not self.nodes[0] and self.workqueue:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
