"""Rows of the slos app: targets, and counts by the minute."""

from django.db import models

from controlplane.policies.models import Workload


class Slo(models.Model):
    """The targets of a workload: "p95 of TTFT is at most 2 s" means that 95 % of requests take at most 2 s.

    At least one of the two is set. Durations are in seconds, percentiles in percent.
    """

    workload = models.OneToOneField(Workload, on_delete=models.CASCADE, related_name="slo")
    ttft_s = models.FloatField(null=True, blank=True)
    ttft_percentile = models.FloatField(default=95.0)
    tpot_s = models.FloatField(null=True, blank=True)
    tpot_percentile = models.FloatField(default=95.0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["workload__name"]

    def __str__(self) -> str:
        return f"SLO of {self.workload_id}"


class SloMinute(models.Model):
    """One workload in one minute, counted with the targets that held then.

    A request that failed counts, and is good for nothing. ``*_good`` are real numbers: latencies come as histograms,
    and the bucket that a target falls into is split.
    """

    slo = models.ForeignKey(Slo, on_delete=models.CASCADE, related_name="minutes")
    minute = models.BigIntegerField()
    """Start, in minutes since the epoch."""
    requests = models.PositiveBigIntegerField()
    errors = models.PositiveBigIntegerField()
    ttft_counted = models.PositiveBigIntegerField()
    ttft_good = models.FloatField()
    tpot_counted = models.PositiveBigIntegerField()
    tpot_good = models.FloatField()

    class Meta:
        ordering = ["minute"]
        constraints = [models.UniqueConstraint(fields=["slo", "minute"], name="one_count_a_minute")]

    def __str__(self) -> str:
        return f"{self.slo_id} at minute {self.minute}"
