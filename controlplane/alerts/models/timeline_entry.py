"""The timeline of an alert: what happened, when, by whom. Rows are never changed."""

from django.db import models

from controlplane.alerts.models.alert import Alert


class TimelineEntry(models.Model):
    """One thing that happened to an alert."""

    class What(models.TextChoices):
        """Kinds of entries."""

        FIRED = "fired"
        RECURRED = "recurred"
        ACKNOWLEDGED = "acknowledged"
        ACKNOWLEDGEMENT_EXPIRED = "acknowledgement_expired"
        RESOLVED = "resolved"
        ASSIGNED = "assigned"
        COMMENTED = "commented"
        SEVERITY = "severity"
        NOTIFIED = "notified"
        NOT_NOTIFIED = "not_notified"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="timeline")
    at = models.DateTimeField()
    what = models.CharField(max_length=32, choices=What.choices)
    actor = models.CharField(max_length=200)
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor}: {self.what}"
