"""The laboratory app."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Simulations and traces."""

    name = "controlplane.lab"
    label = "lab"
    default_auto_field = "django.db.models.BigAutoField"
