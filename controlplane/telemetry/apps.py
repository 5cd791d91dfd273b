"""The telemetry app: live frames in memory, history in its own database."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """Registered as ``controlplane.telemetry``."""

    name = "controlplane.telemetry"
    label = "telemetry"
    default_auto_field = "django.db.models.BigAutoField"
