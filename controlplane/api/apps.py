"""The api app."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """The REST interface."""

    name = "controlplane.api"
    label = "api"
    default_auto_field = "django.db.models.BigAutoField"
