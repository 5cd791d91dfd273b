"""The aliases app."""

from django.apps import AppConfig


class AliasesConfig(AppConfig):
    """Names for models."""

    name = "controlplane.aliases"
    label = "aliases"
    default_auto_field = "django.db.models.BigAutoField"
