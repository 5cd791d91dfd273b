"""API tokens: only their hash is kept; a short prefix stays visible so that people can tell them apart."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models

from controlplane.accounts.access import Scope


class ApiToken(models.Model):
    """A scoped secret of a program."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    @property
    def scope_set(self) -> frozenset[Scope]:
        """The scopes, as values."""
        return frozenset(Scope(name) for name in self.scopes)

    def usable_at(self, moment: datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)
