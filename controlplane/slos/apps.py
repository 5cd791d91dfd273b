"""The slos app."""

from django.apps import AppConfig


class SlosConfig(AppConfig):
    """Targets, attainment and error budgets."""

    name = "controlplane.slos"
    label = "slos"
    default_auto_field = "django.db.models.BigAutoField"
