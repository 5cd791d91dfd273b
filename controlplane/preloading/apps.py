"""The preloading app."""

from django.apps import AppConfig


class PreloadingConfig(AppConfig):
    """Preloads and tenants that opted out."""

    name = "controlplane.preloading"
    label = "preloading"
    default_auto_field = "django.db.models.BigAutoField"
