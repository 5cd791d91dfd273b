"""Rows of the bridge: every configuration document that was published."""

from django.db import models


class ConfigRevision(models.Model):
    """One immutable document, exactly as workers get it."""

    number = models.PositiveBigIntegerField(primary_key=True)
    digest = models.CharField(max_length=64)
    """SHA-256 of the document without its number: equal content is never published twice in a row."""
    body = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"configuration {self.number}"


class ConfigLock(models.Model):
    """One row that publishers lock, so that revisions are numbered and built one after the other."""

    def __str__(self) -> str:
        return "configuration lock"
