"""Slowing down guesses: after a few failures a name, and after more an address, has to wait.

Failures are rows, so the limit holds over all web processes and their restarts. A name that nobody has is counted like
any other: nothing tells which names exist.
"""

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Count, Q
from django.utils import timezone

from controlplane.accounts.models import SignInFailure
from controlplane.accounts.secret_text import digest

WINDOW = timedelta(minutes=5)
MOST_BY_NAME = 5
MOST_BY_ADDRESS = 30


def must_wait(username: str, address: str) -> bool:
    """Return whether too many attempts for this name, or from this address, failed of late."""
    limits = _limits(username, address)
    recent = SignInFailure.objects.filter(at__gt=timezone.now() - WINDOW).order_by()
    counts = recent.aggregate(**{name: Count("pk", filter=Q(key=key)) for name, (key, _) in limits.items()})
    return any(counts[name] >= most for name, (_, most) in limits.items())


def note_failure(username: str, address: str) -> None:
    """Count a failed attempt, and forget those that no longer count."""
    SignInFailure.objects.filter(at__lte=timezone.now() - WINDOW).delete()
    SignInFailure.objects.bulk_create([SignInFailure(key=key) for key, _ in _limits(username, address).values()])


def forgive(username: str, address: str) -> None:
    """Forget the failures of a name that signed in."""
    SignInFailure.objects.filter(key=_limits(username, address)["name"][0]).delete()


def _limits(username: str, address: str) -> Mapping[str, tuple[str, int]]:
    return {
        "name": (digest(f"name {username.casefold()}"), MOST_BY_NAME),
        "address": (digest(f"address {address}"), MOST_BY_ADDRESS),
    }
