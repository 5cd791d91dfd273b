"""The admission app."""

from django.apps import AppConfig


class AdmissionApp(AppConfig):
    """What happens when the fleet is full."""

    name = "controlplane.admission"
    label = "admission"
    default_auto_field = "django.db.models.BigAutoField"
