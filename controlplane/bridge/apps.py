"""The bridge app."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from controlplane.publication import provide_newest, subscribe


class BridgeConfig(AppConfig):
    """What router workers talk to."""

    name = "controlplane.bridge"
    label = "bridge"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Count every change, and publish after migrations (the code that builds the document may have changed)."""
        from controlplane.bridge.publisher import newest_publication, note_change  # models are loaded only now

        provide_newest(newest_publication)
        subscribe(note_change, dispatch_uid="bridge.note_change")
        post_migrate.connect(_after_migrations, sender=self)


def _after_migrations(using: str = "default", **_: Any) -> None:
    from controlplane.bridge.publisher import publish

    if using == "default":
        publish()
