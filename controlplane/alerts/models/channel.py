"""Channels: where notifications go."""

import uuid

from django.db import models

from controlplane.alerts.matchers import Matcher, Operator


class ChannelKind(models.TextChoices):
    """What can be notified; each has a file in ``notifiers``."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    EMAIL = "email"


class Channel(models.Model):
    """One receiver. What is secret of its settings is sealed; ``target`` is what people may see of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=16, choices=ChannelKind.choices)
    target = models.CharField(max_length=300)
    sealed_settings = models.BinaryField()
    matchers = models.JSONField(default=list, blank=True)
    """Alerts that it is told of; none means all."""
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=500, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    refusals = models.PositiveIntegerField(default=0)
    """Answers in a row that say "there is nothing here" without saying that there never will be."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def conditions(self) -> tuple[Matcher, ...]:
        """The matchers, as values."""
        return tuple(Matcher(m["label"], Operator(m["operator"]), m["value"]) for m in self.matchers)
