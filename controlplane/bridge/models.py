"""Rows of the bridge: every configuration document that was published."""

from django.db import models

from controlplane.sealing import unseal


class ConfigRevision(models.Model):
    """One immutable document, exactly as workers get it."""

    number = models.PositiveBigIntegerField(primary_key=True)
    digest = models.CharField(max_length=64)
    """SHA-256 of the document without its number: equal content is never published twice in a row."""
    sealed_body = models.BinaryField()
    """The document as workers get it, sealed at rest: it carries credentials of engines."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"configuration {self.number}"

    @property
    def body(self) -> bytes:
        """The document as workers get it.

        :raises CannotOpen: when it was sealed with another signing key.
        """
        return unseal(bytes(self.sealed_body))


class ConfigLock(models.Model):
    """One row that publishers lock, so that revisions are numbered and built one after the other."""

    def __str__(self) -> str:
        return "configuration lock"
