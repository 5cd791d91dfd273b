"""Shadow policies: what a workload's other policy would have chosen is counted, and nothing follows from it."""

from router.core.decision import Decision
from router.proxy.intake import Intake
from router.proxy.ledger import record_shadow
from router.proxy.plane import Plane


def decide_in_shadow(plane: Plane, intake: Intake, decision: Decision) -> None:
    """Let the workload's shadow policy, if it has one, decide on the same views, and count where it differs."""
    table = plane.table
    workload = intake.request.workload
    shadow = None if table is None else table.shadows.get(workload)
    if shadow is not None:
        other = plane.imagine(intake, shadow)
        record_shadow(plane.stats.fresh, workload, decision, other)
