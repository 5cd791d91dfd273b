"""The ops app: composes what settings name, and registers the system checks."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import register


class OpsConfig(AppConfig):
    """Health, metrics, static files, supervisor, commands."""

    name = "controlplane.ops"
    label = "ops"

    def ready(self) -> None:
        """Make the Celery application the current one, so that tasks can be sent from here."""
        import_module(settings.CELERY_APPLICATION)
        checks = import_module("controlplane.checks")
        for check in checks.CHECKS:
            register(check)
