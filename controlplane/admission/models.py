"""Rows of the admission app: one."""

from django.db import models

from router.config import AdmissionConfig

_STANDARD = AdmissionConfig()


class AdmissionSettings(models.Model):
    """The rule of every router worker's door; while there is no row, the router's own defaults hold."""

    revision = models.PositiveIntegerField(default=0)
    """Grows with every change; 0: nobody has set anything yet."""
    instance_requests = models.PositiveIntegerField(null=True, blank=True, default=_STANDARD.instance_requests)
    queue_requests = models.PositiveIntegerField(default=_STANDARD.queue_requests)
    queue_wait_s = models.FloatField(default=_STANDARD.queue_wait_s)
    batch_window_ms = models.FloatField(default=_STANDARD.batch_window_ms)
    updated_at = models.DateTimeField(null=True, blank=True)
    updated_by = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"admission@{self.revision}"

    @property
    def rule(self) -> AdmissionConfig:
        """The settings as routers take them."""
        return AdmissionConfig(
            instance_requests=self.instance_requests,
            queue_requests=self.queue_requests,
            queue_wait_s=self.queue_wait_s,
            batch_window_ms=self.batch_window_ms,
        )
