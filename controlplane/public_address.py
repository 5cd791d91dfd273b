"""Where people reach the pages: the one rule by which links are written that leave this process.

The public address where there is one; else the address that the caller was reached at, for whoever reads the answer
reached it too; else that of the web process, as ``up`` started it.
"""

from django.conf import settings


def public_address(reached_at: str = "") -> str:
    """Return the address without a slash at its end."""
    address: str = settings.PUBLIC_URL or reached_at or settings.WEB_URL
    return address.rstrip("/")
