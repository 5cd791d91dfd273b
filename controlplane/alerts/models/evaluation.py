"""What evaluations leave behind: which window was evaluated last, and tallies of conditions."""

from django.db import models


class Evaluation(models.Model):
    """One row: the newest window that was evaluated. A window is evaluated once, whoever comes first."""

    bucket = models.BigIntegerField(default=0)
    """End of the window, in seconds since the epoch."""
    at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"evaluated to {self.bucket}"


class Suspicion(models.Model):
    """The tally of one condition that was seen lately, whether or not it is an alert."""

    fingerprint = models.CharField(max_length=32, primary_key=True)
    kind = models.CharField(max_length=48)
    seen = models.PositiveIntegerField(default=0)
    quiet = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}: seen {self.seen}, quiet {self.quiet}"
