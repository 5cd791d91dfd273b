"""Prefix classes on watch: routers look at every request of theirs (stage 2 of hotspot mitigation)."""

from django.db import models


class WatchedClass(models.Model):
    """One class, from the alert that put it on watch until its release."""

    key = models.CharField(max_length=64, primary_key=True)
    since = models.DateTimeField()
    quiet = models.PositiveIntegerField(default=0)
    """Evaluations in a row in which the class was no hotspot."""

    class Meta:
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key
