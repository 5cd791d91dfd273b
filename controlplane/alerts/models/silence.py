"""Silences: for some time, nobody is told of alerts that match."""

import uuid
from datetime import datetime

from django.db import models

from controlplane.alerts.matchers import Matcher, Operator


class Silence(models.Model):
    """Matchers and an end. Silenced alerts are raised, shown and resolved as ever."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    matchers = models.JSONField()
    comment = models.CharField(max_length=500)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-ends_at", "pk"]

    def __str__(self) -> str:
        return ", ".join(str(matcher) for matcher in self.conditions)

    @property
    def conditions(self) -> tuple[Matcher, ...]:
        """The matchers, as values."""
        return tuple(Matcher(m["label"], Operator(m["operator"]), m["value"]) for m in self.matchers)

    def is_active(self, moment: datetime) -> bool:
        """Return whether it holds at a moment."""
        return self.starts_at <= moment < self.ends_at
