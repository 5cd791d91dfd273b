"""Rows of the laboratory."""

import uuid
from typing import Any

from django.db import models

from controlplane.lab.lifecycle import State


class TraceSource(models.TextChoices):
    """Where a trace came from."""

    UPLOAD = "upload"
    RECORDING = "recording"


class Trace(models.Model):
    """A trace file that was taken in and read once; it lies in the data directory under its id."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    source = models.CharField(max_length=16, choices=TraceSource.choices)
    format = models.CharField(max_length=32)
    hashed = models.BooleanField()
    """Whether prompts carry blocks, without which nothing can hit."""
    size_bytes = models.PositiveBigIntegerField()
    statistics = models.JSONField()
    """Fields of :class:`router.sim.traces.statistics.TraceStatistics`."""
    author = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "pk"]

    def __str__(self) -> str:
        return self.name


class Simulation(models.Model):
    """A comparison of policies that somebody asked for."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200, blank=True)
    settings = models.JSONField()
    """Fields of :class:`controlplane.lab.simulation_settings.SimulationSettings`."""
    policies = models.JSONField()
    """``{"name", "content"}`` of each policy, as it was when the simulation was asked for; in order."""
    trace = models.ForeignKey(Trace, null=True, blank=True, on_delete=models.SET_NULL, related_name="simulations")
    """None where the trace is generated."""
    preview_of = models.CharField(max_length=64, blank=True, db_index=True)
    """The policy that is being edited, where the simulation shows what the edited content would do."""
    trace_name = models.CharField(max_length=200)
    state = models.CharField(max_length=16, choices=[(s.value, s.value) for s in State], default=State.QUEUED)
    reason = models.CharField(max_length=1000, blank=True)
    """Why it failed, or what happened to it on the way."""
    phase = models.CharField(max_length=100, blank=True)
    progress = models.FloatField(default=0.0)
    """Share of the phase that is done."""
    pieces = models.JSONField(default=list, blank=True)
    """Fields of :class:`controlplane.lab.child.order.Piece`, one a policy and rate."""
    claim = models.UUIDField(null=True, blank=True)
    """Of the worker that has it; whoever holds another one has lost it."""
    attempts = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(null=True, blank=True)
    """When the worker that has it last said so."""
    author = models.CharField(max_length=200)
    user = models.ForeignKey("accounts.User", null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "pk"]
        indexes = [models.Index(fields=["state", "created_at"])]

    def __str__(self) -> str:
        return self.name or self.trace_name

    @property
    def life(self) -> State:
        """The state, as a value of the life-cycle."""
        return State(self.state)

    @property
    def contents(self) -> dict[str, dict[str, Any]]:
        """The content of each policy by its name, in order."""
        return {policy["name"]: policy["content"] for policy in self.policies}


class SimulationResult(models.Model):
    """What came out, apart from the row itself because it is large."""

    simulation = models.OneToOneField(Simulation, on_delete=models.CASCADE, primary_key=True, related_name="result")
    comparison = models.JSONField()
    """Fields of :class:`router.sim.report.comparison.Comparison`."""

    def __str__(self) -> str:
        return f"result of {self.simulation_id}"
