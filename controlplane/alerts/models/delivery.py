"""The outbox: one row for each notification to one channel. The row is the queue."""

import uuid

from django.db import models

from controlplane.alerts.models.alert import Alert
from controlplane.alerts.models.channel import Channel


class DeliveryState(models.TextChoices):
    """Where a notification is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    """Given up: it cannot succeed, or was tried for long enough."""
    DROPPED = "dropped"
    """Never tried, or not again, because the channel was disabled."""


class Occasion(models.TextChoices):
    """What a notification says."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    TEST = "test"


class Delivery(models.Model):
    """One notification. Its id is the idempotency key, and its body is fixed when the row is made: a notification
    that is sent twice, because a process died between sending and noting it, says the same twice."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sequence = models.PositiveBigIntegerField(db_index=True)
    """Order of making; those of one alert to one channel are sent in this order, one after the other."""
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries")
    occasion = models.CharField(max_length=16, choices=Occasion.choices)
    body = models.TextField()
    state = models.CharField(max_length=16, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-sequence"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["state", "due_at"]),
            models.Index(fields=["channel", "-sequence"]),
        ]

    def __str__(self) -> str:
        return f"{self.occasion} to {self.channel_id}"


class DeliveryAttempt(models.Model):
    """One attempt, as the delivery log shows it. Rows are never changed."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField()
    took_s = models.FloatField()
    ok = models.BooleanField()
    status = models.PositiveIntegerField(null=True, blank=True)
    """HTTP or SMTP status, where there was one."""
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {'delivered' if self.ok else self.detail}"
