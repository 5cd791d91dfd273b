"""Rows of the telemetry app, in its own database."""

from django.db import models


class RollupRow(models.Model):
    """Ten seconds of one worker, as one web process heard it (see :mod:`controlplane.telemetry.rollup`)."""

    bucket = models.BigIntegerField()
    worker = models.CharField(max_length=200)
    writer = models.UUIDField()
    """The web process: a worker may talk to several of them."""
    body = models.BinaryField()

    class Meta:
        ordering = ["bucket", "worker"]
        constraints = [models.UniqueConstraint(fields=["bucket", "worker", "writer"], name="one_rollup_a_bucket")]

    def __str__(self) -> str:
        return f"{self.worker} at {self.bucket}"
