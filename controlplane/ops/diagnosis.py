"""A check-up of this installation, as findings that people can read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.checks import run_checks
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from controlplane.alerts.selectors import last_evaluated_at
from controlplane.fleet.selectors import count_by_state, living
from controlplane.ops.standstill import tasks_stand_still_since
from router.compiled import is_compiled
from router.core.instance import ROUTABLE_STATES
from router.core.prefix import IMPLEMENTATION

_OLD_MESSAGES = 200
_REDIS_NEEDED = (6, 2)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    ok: bool
    subject: str
    text: str


def findings() -> Iterator[Finding]:
    """Look at everything, and yield what was found."""
    yield from _settings()
    yield _compiled()
    databases = [_database(alias) for alias in dict.fromkeys(("default", settings.TELEMETRY_DATABASE))]
    yield from databases
    yield _broker()
    if all(finding.ok for finding in databases):
        yield _tasks()
        yield from _instances()


def _settings() -> Iterator[Finding]:
    messages = run_checks()
    for message in messages:
        yield Finding(False, message.id or "settings", f"{message.msg} {message.hint or ''}".strip())
    if not messages:
        yield Finding(True, "settings", f"data in {settings.DATA_DIR}")


def _compiled() -> Finding:
    """What is not compiled serves as well, but costs more: nothing to be mended."""
    modules = "compiled" if is_compiled() else "plain Python: a request costs about twice as much (`make compile`)"
    return Finding(True, "speed", f"prefix index {IMPLEMENTATION}, what every request passes through {modules}")


def _database(alias: str) -> Finding:
    connection = connections[alias]
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return Finding(False, f"database {alias}", str(error).strip())
    if missing:
        return Finding(False, f"database {alias}", f"{len(missing)} migrations are missing: run `pointsman up`")
    return Finding(True, f"database {alias}", f"{connection.vendor}, all migrations applied")


def _broker() -> Finding:
    if settings.REDIS_URL:
        return _redis(settings.REDIS_URL)
    folder = Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_in"]))
    waiting = sum(1 for _ in folder.glob("*.msg")) if folder.exists() else 0
    if waiting > _OLD_MESSAGES:
        return Finding(False, "broker", f"{waiting} messages wait in {folder}: is the Celery worker running?")
    return Finding(True, "broker", f"filesystem, {waiting} messages wait")


def _redis(url: str) -> Finding:
    import redis  # needs the extra "redis"

    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            version = client.info("server")["redis_version"]
    except redis.RedisError as error:
        return Finding(
            False, "Redis", f"does not answer: {error}. Tasks wait, and web processes do not hear each other"
        )
    if tuple(map(int, version.split(".")[:2])) < _REDIS_NEEDED:
        return Finding(False, "Redis", f"{version} is too old for web processes to share snapshots: 6.2 or newer")
    return Finding(True, "Redis", f"{version}: broker of tasks, and shares snapshots between web processes")


def _tasks() -> Finding:
    since = tasks_stand_still_since()
    if since is not None:
        return Finding(
            False, "tasks", f"none has run since {since:%Y-%m-%d %H:%M:%S} UTC: is the Celery worker running?"
        )
    return Finding(True, "tasks", "run" if last_evaluated_at() else "none has run yet")


def _instances() -> Iterator[Finding]:
    counts = count_by_state()
    routable = sum(counts[state] for state in ROUTABLE_STATES)
    present = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    yield Finding(routable > 0, "instances", present or "none is registered: PUT /api/v1/instances/NAME/")
    for instance in living().filter(probe_ok=False):
        yield Finding(False, f"instance {instance.name}", " ".join(instance.probe_reasons))
