"""Alerts."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.alerts.finding import Severity
from controlplane.alerts.lifecycle import AlertState


class Alert(models.Model):
    """One condition, from its first alarm to its last resolution."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    fingerprint = models.CharField(max_length=32)
    kind = models.CharField(max_length=48)
    severity = models.CharField(max_length=16, choices=[(s.value, s.value) for s in Severity])
    labels = models.JSONField(default=dict)
    """What it is about; kind and severity are not repeated here."""
    summary = models.CharField(max_length=500)
    values = models.JSONField(default=dict)
    """The newest evidence, with units in the names."""

    state = models.CharField(max_length=16, choices=[(s.value, s.value) for s in AlertState], default=AlertState.FIRING)
    state_since = models.DateTimeField()
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    recurrences = models.PositiveIntegerField(default=0)
    """How often it came back soon after it was resolved."""
    acknowledged_by = models.CharField(max_length=200, blank=True)
    acknowledged_until = models.DateTimeField(null=True, blank=True)
    """When the acknowledgement ends; None while it has no end or there is none."""
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.CharField(max_length=200, blank=True)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    announced = models.BooleanField(default=False)
    """Whether channels were told that it fires; they are told of its end only then."""

    class Meta:
        ordering = ["-started_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint"],
                condition=~Q(state=AlertState.RESOLVED),
                name="one_open_alert_a_fingerprint",
            )
        ]
        indexes = [
            models.Index(fields=["state", "-started_at"]),
            models.Index(fields=["fingerprint", "-started_at"]),
        ]

    def __str__(self) -> str:
        return self.summary

    @property
    def life(self) -> AlertState:
        """The state, as a value of the life-cycle."""
        return AlertState(self.state)

    @property
    def is_open(self) -> bool:
        """Whether somebody may still have to look after it."""
        return self.state != AlertState.RESOLVED

    @property
    def all_labels(self) -> dict[str, str]:
        """The labels that silences and routes match."""
        return {**self.labels, "kind": self.kind, "severity": self.severity}
