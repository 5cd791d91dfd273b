"""Whether scheduled tasks run: alerts are evaluated every ten seconds, whatever else happens, and leave a trace."""

from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.alerts.selectors import last_evaluated_at

LATE = timedelta(seconds=60)


def tasks_stand_still_since() -> datetime | None:
    """Return when a task was last seen to run, if that is too long ago; None while they run, or none ever did."""
    at = last_evaluated_at()
    return at if at is not None and timezone.now() - at > LATE else None
