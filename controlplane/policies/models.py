"""Rows of the policies app."""

import uuid

from django.conf import settings
from django.db import models

from router.core.request import DEFAULT_WORKLOAD


class Policy(models.Model):
    """A named weighting policy: one published revision, and perhaps a draft of the next."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True)
    live = models.ForeignKey(
        "policies.PolicyRevision", null=True, blank=True, on_delete=models.PROTECT, related_name="live_for"
    )
    draft = models.JSONField(null=True, blank=True)
    draft_base = models.PositiveIntegerField(null=True, blank=True)
    """Number of the revision that the draft was begun from."""
    draft_author = models.CharField(max_length=200, blank=True)
    draft_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class PolicyRevision(models.Model):
    """What a policy was at one time; never changed."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    content = models.JSONField()
    message = models.TextField(blank=True)
    author = models.CharField(max_length=200)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    restores = models.PositiveIntegerField(null=True, blank=True)
    """Number of the revision that this one brings back."""

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["policy", "number"], name="one_revision_a_number")]

    def __str__(self) -> str:
        return f"{self.policy_id}@{self.number}"


class Workload(models.Model):
    """A kind of traffic: how it is recognised, and which policy routes it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True)
    position = models.PositiveIntegerField(default=100)
    """Rules are tried in this order, then by name; the default workload is always last."""
    match = models.JSONField(default=dict, blank=True)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="workloads")
    shadow_policy = models.ForeignKey(
        Policy, null=True, blank=True, on_delete=models.PROTECT, related_name="shadowed_workloads"
    )
    """Decides every request as well, without being obeyed."""
    concurrent = models.PositiveIntegerField(null=True, blank=True)
    """Most requests that one router worker serves at a time; None: no limit."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_default(self) -> bool:
        """Whether this is the workload of everything that no rule matches."""
        return self.name == DEFAULT_WORKLOAD


class ShadowHour(models.Model):
    """How often a workload's shadow policy would have gone elsewhere in one hour; names, so that it outlives both."""

    workload = models.CharField(max_length=64)
    live_policy = models.CharField(max_length=80)
    shadow_policy = models.CharField(max_length=80)
    hour = models.DateTimeField()
    decisions = models.PositiveBigIntegerField(default=0)
    differs = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    """Of decisions in which both chose an instance, as are the four below."""
    live_hit_tokens = models.PositiveBigIntegerField(default=0)
    shadow_hit_tokens = models.PositiveBigIntegerField(default=0)
    live_product = models.PositiveBigIntegerField(default=0)
    """P-token x BS of what was chosen, added up."""
    shadow_product = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-hour", "workload"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "live_policy", "shadow_policy", "hour"], name="one_shadow_count_an_hour"
            )
        ]

    def __str__(self) -> str:
        return f"{self.workload}: {self.shadow_policy} beside {self.live_policy}"


class ShadowMoveHour(models.Model):
    """How many decisions a shadow policy would have sent from one instance to another in one hour."""

    workload = models.CharField(max_length=64)
    live_policy = models.CharField(max_length=80)
    shadow_policy = models.CharField(max_length=80)
    hour = models.DateTimeField()
    live = models.CharField(max_length=200)
    """Name of the instance that was chosen."""
    shadow = models.CharField(max_length=200)
    """Name of the instance that the shadow would have chosen."""
    decisions = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-hour", "workload"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "live_policy", "shadow_policy", "hour", "live", "shadow"],
                name="one_shadow_move_an_hour",
            )
        ]

    def __str__(self) -> str:
        return f"{self.workload}: {self.live} -> {self.shadow}"
