"""System checks: what `manage.py check` and every start say about a questionable set-up, each with an id and a hint."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

_FOR_TESTS = frozenset({"POINTSMAN_REQUIRE_ALL", "POINTSMAN_SHARED_MATERIAL"})


def known_variables() -> frozenset[str]:
    """Return every variable that something reads; anything else of this name is a slip."""
    read = {reading.name for reading in settings.ENVIRONMENT}
    files = {f"{reading.name}_FILE" for reading in settings.ENVIRONMENT if reading.is_secret}
    return frozenset(read | files) | _FOR_TESTS


def check_unknown_variables(**_: Any) -> list[CheckMessage]:
    """Warn of variables that nothing reads."""
    known = known_variables()
    unknown = sorted(name for name in os.environ if name.startswith("POINTSMAN_") and name not in known)
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
