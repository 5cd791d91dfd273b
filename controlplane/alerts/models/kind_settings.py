"""Settings of a kind of alert that differ from its defaults."""

from django.db import models


class KindSettings(models.Model):
    """One kind: whether it is evaluated, and which of its limits were changed."""

    kind = models.CharField(max_length=48, primary_key=True)
    enabled = models.BooleanField(default=True)
    limits = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return self.kind
