"""The accounts app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People, roles, API tokens and the audit log."""

    name = "controlplane.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"
