"""System checks: what `manage.py check` and every start say about a questionable set-up, each with an id and a hint."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

KNOWN_VARIABLES = frozenset(
    {
        "POINTSMAN_ALLOWED_HOSTS",
        "POINTSMAN_ALLOW_LINK_LOCAL",
        "POINTSMAN_AUDIT_RETENTION_DAYS",
        "POINTSMAN_BEHIND_TLS_PROXY",
        "POINTSMAN_DATA_DIR",
        "POINTSMAN_DEBUG",
        "POINTSMAN_HTTPS",
        "POINTSMAN_LAB_CONCURRENT",
        "POINTSMAN_LAB_PROCESSES",
        "POINTSMAN_LAB_REQUESTS",
        "POINTSMAN_LAB_TIME_LIMIT_S",
        "POINTSMAN_LAB_UPLOAD_MIB",
        "POINTSMAN_PRELOAD",
        "POINTSMAN_PROBE_FAILURES_DOWN",
        "POINTSMAN_PROBE_INTERVAL_S",
        "POINTSMAN_PROBE_SUCCESSES_UP",
        "POINTSMAN_PROBE_TIMEOUT_S",
        "POINTSMAN_PRODUCTION",
        "POINTSMAN_PUBLIC_URL",
        "POINTSMAN_REMOVE_EXPIRED_AFTER_S",
        "POINTSMAN_REQUIRE_ALL",
        "POINTSMAN_REQUIRE_KEY",
        "POINTSMAN_ROUTER_URL",
        "POINTSMAN_SECRET_KEY",
        "POINTSMAN_SECRET_KEY_FILE",
        "POINTSMAN_SHARED_MATERIAL",
        "POINTSMAN_TRUSTED_ORIGINS",
        "POINTSMAN_WARMING_S",
    }
)
"""Every variable that something reads; anything else of this name is a slip."""


def check_unknown_variables(**_: Any) -> list[CheckMessage]:
    """Warn of variables that nothing reads."""
    unknown = sorted(n for n in os.environ if n.startswith("POINTSMAN_") and n not in KNOWN_VARIABLES)
    return [Caution(f"Nothing reads {name}.", hint="Is the name misspelt?", id="pointsman.W001") for name in unknown]


def check_production(**_: Any) -> list[CheckMessage]:
    """Refuse production with settings that are only right for one machine."""
    if not settings.PRODUCTION:
        return []
    found: list[CheckMessage] = []
    if not settings.ALLOWED_HOSTS:
        found.append(Error("No host name is allowed.", hint="Set POINTSMAN_ALLOWED_HOSTS.", id="pointsman.E001"))
    if settings.DEBUG:
        found.append(
            Error("POINTSMAN_DEBUG is on in production.", hint="It shows internals to strangers.", id="pointsman.E002")
        )
    if not settings.HTTPS:
        found.append(
            Caution(
                "Cookies and tokens travel in the clear.",
                hint="Serve HTTPS, or set POINTSMAN_HTTPS=true behind a proxy that does.",
                id="pointsman.W002",
            )
        )
    return found


def check_data_dir(**_: Any) -> list[CheckMessage]:
    """Refuse a data directory that cannot be written."""
    folder = settings.DATA_DIR
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    return [
        Error(f"The data directory {folder} cannot be written.", hint="Set POINTSMAN_DATA_DIR.", id="pointsman.E003")
    ]


CHECKS: Sequence[Callable[..., list[CheckMessage]]] = (check_unknown_variables, check_production, check_data_dir)
