"""Rows of the fleet app."""

import uuid

from django.db import models
from django.db.models import Q

from router.core.instance import InstanceState


class InstanceRole(models.TextChoices):
    """What an instance does of a request."""

    BOTH = "both"
    PREFILL = "prefill"
    DECODE = "decode"


class ModelsSource(models.TextChoices):
    """Who said which models an instance serves."""

    DECLARED = "declared"
    PROBED = "probed"


class Instance(models.Model):
    """An inference engine at an address. The name may be used again once it is removed; the id never is."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=500)
    role = models.CharField(max_length=16, choices=InstanceRole.choices, default=InstanceRole.BOTH)
    hardware = models.CharField(max_length=64, blank=True)
    """Name of a profile in `router.core.hardware_profiles`; blank where it is not known."""
    labels = models.JSONField(default=dict, blank=True)
    spot = models.BooleanField(default=False)

    authorization = models.BinaryField(null=True, blank=True)
    """Sealed: what to send the engine as ``Authorization``."""

    state = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in InstanceState], default=InstanceState.REGISTERED
    )
    state_reason = models.CharField(max_length=500, blank=True)
    state_since = models.DateTimeField()
    epoch = models.PositiveIntegerField(default=1)
    """Grows whenever the engine behind the name lost its cache or changed its address."""

    served_models = models.JSONField(default=list, blank=True)
    """Names it answers to; empty means any."""
    models_source = models.CharField(max_length=16, choices=ModelsSource.choices, default=ModelsSource.PROBED)
    engine = models.CharField(max_length=32, blank=True)
    kv_block_tokens = models.PositiveIntegerField(null=True, blank=True)
    kv_capacity_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    kv_event_endpoints = models.JSONField(default=list, blank=True)
    kv_events = models.JSONField(null=True, blank=True)
    """Where it publishes KV events, as people said; None has routers ask the engine."""
    data_parallel_ranks = models.PositiveIntegerField(null=True, blank=True)
    """Ranks behind its address, as people said; None has the probe find out."""
    probed_ranks = models.PositiveIntegerField(null=True, blank=True)
    """Ranks that the engine was seen to have; None where it did not say."""
    has_metrics = models.BooleanField(default=False)
    process_started_unix_s = models.FloatField(null=True, blank=True)

    probe_ok = models.BooleanField(null=True, blank=True)
    probe_reasons = models.JSONField(default=list, blank=True)
    probe_failures = models.PositiveIntegerField(default=0)
    """Failed probes in a row."""
    probe_successes = models.PositiveIntegerField(default=0)
    """Successful probes in a row."""
    probed_at = models.DateTimeField(null=True, blank=True)
    probe_due_at = models.DateTimeField()

    lease_s = models.PositiveIntegerField(null=True, blank=True)
    """Seconds that one heartbeat lasts; None where the instance need not send any."""
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    last_heartbeat_at = models.DateTimeField(null=True, blank=True)
    preempt_at = models.DateTimeField(null=True, blank=True)
    """When the provider takes a spot instance away."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=~Q(state=InstanceState.REMOVED), name="one_living_instance_a_name"
            )
        ]
        indexes = [
            models.Index(fields=["state", "name"]),
            models.Index(fields=["probe_due_at"]),
            models.Index(fields=["lease_expires_at"]),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def ranks(self) -> int:
        """How many data-parallel ranks are routed to, one by one; 1 is a plain engine."""
        return self.data_parallel_ranks or self.probed_ranks or 1

    @property
    def life(self) -> InstanceState:
        """The state, as a value of the life-cycle."""
        return InstanceState(self.state)
