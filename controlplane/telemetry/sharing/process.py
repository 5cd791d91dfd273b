"""The sharing of this process: over Redis where there is one."""

from functools import cache

from django.conf import settings

from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.hub import hub
from controlplane.telemetry.sharing.alone import Alone
from controlplane.telemetry.sharing.names import own_identity
from controlplane.telemetry.sharing.sharing import Sharing
from router.snapshot import Snapshot


@cache
def sharing() -> Sharing:
    """Return what this process shares by; the web process starts and stops it."""
    url = settings.REDIS_URL
    if not url:
        return Alone()
    from controlplane.telemetry.sharing.mirror import Mirror  # needs the extra "redis"
    from controlplane.telemetry.sharing.stream import Stream

    made = Mirror(lambda: Stream(url, settings.REDIS_NAMESPACE), SystemClock(), _take, own_identity())
    hub().is_whole = lambda: made.whole
    return made


def _take(snapshot: Snapshot, heard_by: str, age_s: float) -> None:
    hub().accept(snapshot, heard_by=heard_by, age_s=age_s)
