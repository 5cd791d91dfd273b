"""The alerts app."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts, silences, channels and the outbox."""

    name = "controlplane.alerts"
    label = "alerts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have alerts evaluated when a new roll-up is there."""
        from controlplane.alerts.doorbell import ring_evaluation  # tasks are importable only now
        from controlplane.telemetry.rollups import subscribe

        subscribe(ring_evaluation, dispatch_uid="alerts.evaluate")
