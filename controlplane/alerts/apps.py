"""The alerts app."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts, silences, channels and the outbox."""

    name = "controlplane.alerts"
    label = "alerts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have alerts evaluated when a new roll-up is there, and roll-ups written early when they show a hot class."""
        from controlplane.alerts.doorbell import ring_early_look, ring_evaluation  # models are importable only now
        from controlplane.alerts.early import looks_hot
        from controlplane.telemetry.ingest import write_early_when
        from controlplane.telemetry.rollups import subscribe, subscribe_early

        subscribe(ring_evaluation, dispatch_uid="alerts.evaluate")
        subscribe_early(ring_early_look, dispatch_uid="alerts.look_early")
        write_early_when(looks_hot)
