"""Is the process alive, can it serve, and what does it measure."""

from django.conf import settings
from django.db import DatabaseError, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from controlplane.ops.metrics import registry


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Answer as long as the process runs its event loop."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when every database can be read, else 503 with the reasons."""
    faults = {alias: fault for alias in ("default", settings.TELEMETRY_DATABASE) if (fault := _database_fault(alias))}
    return JsonResponse({"ready": not faults, "faults": faults}, status=503 if faults else 200)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the Prometheus text."""
    return HttpResponse(generate_latest(registry()), content_type=CONTENT_TYPE_LATEST)


def _database_fault(alias: str) -> str | None:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError as error:
        return str(error).strip()
    return None
