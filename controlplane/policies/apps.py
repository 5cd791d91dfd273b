"""The policies app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class PoliciesConfig(AppConfig):
    """Workloads, policies and their immutable revisions."""

    name = "controlplane.policies"
    label = "policies"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the defaults made after migrations."""
        from controlplane.policies.defaults import ensure_defaults  # models are loaded only now

        post_migrate.connect(ensure_defaults, sender=self)
