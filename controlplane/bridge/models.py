"""Rows of the bridge: every configuration document that was published."""

import zlib

from django.db import models

from controlplane.sealing import unseal


class ConfigRevision(models.Model):
    """One immutable document, exactly as workers get it."""

    number = models.PositiveBigIntegerField(primary_key=True)
    digest = models.CharField(max_length=64)
    """SHA-256 of the document without its number: equal content is never published twice in a row."""
    sealed_body = models.BinaryField()
    """The document as workers get it, compressed, and sealed at rest: it carries credentials of engines."""
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
        return zlib.decompress(unseal(bytes(self.sealed_body)))


class ConfigState(models.Model):
    """One row: how many changes there were, up to which of them was published, and as which revision.

    Every change counts up in its own transaction; who wants the newest document publishes what is missing. So many
    changes in a row cost little, and a document is only ever built for somebody who wants it.
    """

    changes = models.PositiveBigIntegerField(default=1)
    published_changes = models.PositiveBigIntegerField(default=0)
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"configuration state: {self.changes} changes, revision {self.number}"
