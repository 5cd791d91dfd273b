"""What router workers say of each instance now."""

from collections.abc import Mapping

from controlplane.telemetry.frame import InstanceRow
from controlplane.telemetry.hub import hub


def live_instances() -> Mapping[str, InstanceRow]:
    """Return the present row of every instance that a worker knows, by its id."""
    return {row.id: row for row in hub().newest_frame().instances}
