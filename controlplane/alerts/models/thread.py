"""What a channel called an alert's first message, so that later ones change it instead of adding to it."""

from django.db import models

from controlplane.alerts.models.alert import Alert
from controlplane.alerts.models.channel import Channel


class ChannelThread(models.Model):
    """One alert in one channel."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="threads")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="threads")
    reference = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["channel", "alert"], name="one_thread_an_alert_and_channel")]

    def __str__(self) -> str:
        return self.reference
