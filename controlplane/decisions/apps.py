"""The decisions app."""

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    """Questions about requests, and the decisions that were found."""

    name = "controlplane.decisions"
    label = "decisions"
    default_auto_field = "django.db.models.BigAutoField"
