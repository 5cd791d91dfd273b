"""Tenants: who uses inference, how much they may, their keys, and what they used."""

import uuid

from django.db import models


class Tenant(models.Model):
    """A team or customer; a limit that is not set is none."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True)
    active = models.BooleanField(default=True)
    tokens_per_minute = models.PositiveBigIntegerField(null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrent = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class InferenceKey(models.Model):
    """An API key for inference: only its hash is kept, its beginning stays visible."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class TenantUsage(models.Model):
    """What a tenant used of a workload in one hour; names, so that it outlives both."""

    tenant = models.CharField(max_length=64)
    workload = models.CharField(max_length=64)
    hour = models.DateTimeField()
    requests = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-hour", "tenant", "workload"]
        constraints = [models.UniqueConstraint(fields=["tenant", "workload", "hour"], name="one_usage_an_hour")]

    def __str__(self) -> str:
        return f"{self.tenant} {self.workload} {self.hour:%Y-%m-%d %H}h"
