"""Where rows live: SQLite files in the data directory, or PostgreSQL.

The telemetry app has a database of its own, so that its many writes never hold up an edit of a policy. With PostgreSQL,
which has no such lock, everything is in the one database, and the alias ``telemetry`` is another name for it. Code
never names an alias: the router below knows.
"""

from pathlib import Path
from typing import Any

from django.conf import settings

from controlplane.env import parse_database_url

TELEMETRY_APP = "telemetry"
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
_KEPT_S = 600
"""How long a thread keeps its connection: :mod:`controlplane.http` has few threads, which live long."""


def database_settings(url: str | None, data_dir: Path) -> dict[str, dict[str, Any]]:
    """Return the ``DATABASES`` setting."""
    if url is None:
        return {
            "default": _sqlite(data_dir / "pointsman.sqlite3"),
            "telemetry": _sqlite(data_dir / "telemetry.sqlite3"),
        }
    main = parse_database_url("DATABASE_URL", url) | {"CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": _KEPT_S}
    return {"default": main, "telemetry": main | {"TEST": {"MIRROR": "default"}}}


def telemetry_alias(url: str | None) -> str:
    """Return the alias of the database that the telemetry tables are in."""
    return "telemetry" if url is None else "default"


class TelemetryRouter:
    """Sends the telemetry app to its database, and everything else to the default one."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        """Name the database of a model."""
        return _alias(model._meta.app_label)

    def db_for_write(self, model: Any, **hints: Any) -> str:
        """Name the database of a model."""
        return _alias(model._meta.app_label)

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        """Refuse relations across databases."""
        return _alias(one._meta.app_label) == _alias(other._meta.app_label)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Keep each app's tables in its own database."""
        return db == _alias(app_label)


def _alias(app_label: str) -> str:
    alias: str = settings.TELEMETRY_DATABASE if app_label == TELEMETRY_APP else "default"
    return alias


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": _KEPT_S,
        "OPTIONS": dict(_SQLITE_OPTIONS),
        "TEST": {"NAME": str(path.with_name(f"test-{path.name}"))},
    }
