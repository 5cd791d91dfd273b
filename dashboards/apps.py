"""The dashboards app."""

from django.apps import AppConfig


class DashboardsConfig(AppConfig):
    """Registered as ``dashboards``; it has no tables of its own."""

    name = "dashboards"
