"""Prefix classes on watch: routers look at every request of theirs (stage 2 of hotspot mitigation)."""

from django.db import models


class WatchedClass(models.Model):
    """One class, from the window that put it on watch until its release."""

    key = models.CharField(max_length=16, primary_key=True)
    """The id of the class."""
    since_s = models.FloatField()
    """End of the window that put it on watch, in seconds since the epoch."""
    calm_since_s = models.FloatField(null=True, blank=True)
    """End of the first window in which it was not hot, after it last was."""

    class Meta:
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key
