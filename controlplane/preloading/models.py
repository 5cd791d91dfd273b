"""Rows of the preloading app."""

import uuid

from django.db import models
from django.db.models import Q

from controlplane.accounts.models import Tenant
from controlplane.preloading.lifecycle import PreloadState


class Reason(models.TextChoices):
    """Why an instance should hold a prefix."""

    JOINED = "joined"
    """It is new, or lost its cache."""
    WIDEN = "widen"
    """The class is hot, and too few instances hold its prefix."""


class Preload(models.Model):
    """One prefix class for one instance; ``epoch`` is that of the engine's cache."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    class_id = models.CharField(max_length=16)
    instance_id = models.UUIDField()
    instance_name = models.CharField(max_length=100)
    epoch = models.PositiveIntegerField()
    reason = models.CharField(max_length=16, choices=Reason.choices)
    state = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in PreloadState], default=PreloadState.PLANNED
    )
    tokens = models.PositiveIntegerField(default=0)
    """About how long the text is."""
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    detail = models.CharField(max_length=300, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    """As the engine counted them."""
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    """Of these, what the engine had already."""
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["class_id", "instance_id"],
                condition=Q(state=PreloadState.PLANNED),
                name="one_planned_preload_a_class_and_instance",
            )
        ]
        indexes = [models.Index(fields=["state", "due_at"]), models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.class_id} to {self.instance_name}"

    @property
    def life(self) -> PreloadState:
        """The state, as a value of the life-cycle."""
        return PreloadState(self.state)


class TenantOptOut(models.Model):
    """A tenant whose prompts are never kept, not even in part, not even in a router's memory."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="preload_opt_out")
    since = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.tenant_id} opted out"
