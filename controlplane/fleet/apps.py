"""The fleet app."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Instances, their life-cycle, probes and leases."""

    name = "controlplane.fleet"
    label = "fleet"
    default_auto_field = "django.db.models.BigAutoField"
