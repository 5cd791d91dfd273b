"""What is in force: versions, workers, retention, recording, limits of alerts, and the environment without its secrets.

What comes from the environment is only shown. Limits of alerts are rows, and may be changed here.
"""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import django
import msgspec
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts import selectors
from controlplane.accounts.access import Role, Scope
from controlplane.alerts.evaluating import limits_in_force
from controlplane.alerts.kind import Kind
from controlplane.alerts.kinds import KINDS, kind_named
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.bridge.publisher import KEPT as KEPT_DOCUMENTS
from controlplane.bridge.workers import convergence
from controlplane.errors import ControlPlaneError
from controlplane.lab.limits import KEPT_SIMULATIONS
from controlplane.lab.own_traffic import own_recording
from controlplane.ops.diagnosis import findings
from controlplane.ops.retention import rules
from controlplane.telemetry.decision_samples import CAPACITY
from controlplane.telemetry.rollups import KEPT_S
from dashboards.access import may, needs, signed_in_actor
from dashboards.refusal import refused
from router import __version__


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit of a kind of alert: what is in force, and what it would be if nobody had changed it."""

    name: str
    value: float
    default: float
    help: str

    @property
    def changed(self) -> bool:
        """Whether somebody changed it."""
        return self.value != self.default


@dataclass(frozen=True, slots=True)
class KindLine:
    """One kind of alert, and whether it is looked for."""

    kind: Kind
    enabled: bool
    limits: tuple[LimitLine, ...]


@require_safe
@needs(Scope.ADMIN)
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Show everything that is in force."""
    return rendered(request, {})


def rendered(request: HttpRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    """Return the page, with ``more`` to show on it."""
    context = {
        "versions": _versions(),
        "findings": list(findings()),
        "convergence": convergence(),
        "retention": rules(),
        "kept": _kept(),
        "records": settings.RECORD,
        "recording": own_recording(),
        "kinds": list(_kinds()),
        "environment": settings.ENVIRONMENT,
        "may_change_alerts": may(request, Scope.ALERTS),
        "people": selectors.users(),
        "roles": [role.value for role in Role],
    }
    return render(request, "dashboards/settings/page.html", context | more, status=status)


@require_safe
@needs(Scope.ADMIN)
@never_cache
def workers(request: HttpRequest) -> HttpResponse:
    """Return the workers alone; the page asks for them again and again."""
    return render(request, "dashboards/settings/workers.html", {"convergence": convergence()})


@require_POST
@needs(Scope.ALERTS)
def change_kind(request: HttpRequest, name: str) -> HttpResponse:
    """Set whether a kind of alert is looked for, and its limits."""
    try:
        kind = kind_named(name)
        set_kind(
            actor=signed_in_actor(request),
            name=name,
            enabled=request.POST.get("enabled") == "on",
            limits=_changed_limits(request, kind),
        )
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:settings")
    looked = "is looked for with these limits" if request.POST.get("enabled") == "on" else "is not looked for"
    messages.success(request, f"{kind.title} {looked} from the next evaluation on.")
    return redirect("dashboards:settings")


def _changed_limits(request: HttpRequest, kind: Kind) -> dict[str, Any]:
    """Return the limits that differ from the defaults; texts that are no numbers are left for the kind to refuse."""
    defaults = msgspec.to_builtins(kind.limits)
    sent = {name: _number(request.POST.get(name, ""), default) for name, default in defaults.items()}
    return {name: value for name, value in sent.items() if value != defaults[name]}


def _number(text: str, default: float) -> float | str:
    try:
        return int(text) if isinstance(default, int) else float(text)
    except ValueError:
        return text


def _versions() -> list[tuple[str, str]]:
    return [
        ("Pointsman", __version__),
        ("Python", platform.python_version()),
        ("Django", django.get_version()),
        ("Database", "PostgreSQL" if settings.DATABASE_URL else "SQLite"),
        ("Broker", "Redis" if settings.REDIS_URL else "files in the data directory"),
        ("Data", str(settings.DATA_DIR)),
    ]


def _kept() -> list[tuple[str, int, str]]:
    return [
        ("sampled decisions", CAPACITY, "newest"),
        ("ten-second sums of telemetry", KEPT_S // 60, "minutes"),
        ("configuration documents", KEPT_DOCUMENTS, "newest"),
        ("simulations that have ended", KEPT_SIMULATIONS, "newest"),
    ]


def _kinds() -> Iterator[KindLine]:
    in_force = limits_in_force()
    for name, kind in KINDS.items():
        defaults = msgspec.to_builtins(kind.limits)
        values = msgspec.to_builtins(in_force.get(name, kind.limits))
        lines = tuple(LimitLine(key, values[key], default, kind.limit_docs[key]) for key, default in defaults.items())
        yield KindLine(kind, name in in_force, lines)
