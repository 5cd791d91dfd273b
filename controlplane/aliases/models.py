"""Rows of the aliases app."""

import uuid

from django.db import models

from controlplane.aliases.target import MOST_NAME_CHARS, Target


class ModelAlias(models.Model):
    """A name that stands for models, and each one's weight."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=MOST_NAME_CHARS, unique=True)
    description = models.TextField(blank=True)
    targets = models.JSONField()
    """``[{"model": ..., "weight": ...}, ...]``, in the order in which they were given."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def split(self) -> tuple[Target, ...]:
        """The targets, as values."""
        return tuple(Target(**target) for target in self.targets)
