"""Failed attempts to sign in, kept for as long as they count."""

from django.db import models


class SignInFailure(models.Model):
    """One attempt, filed under what it is counted by (a user name or an address), hashed."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["key", "at"])]

    def __str__(self) -> str:
        return f"failed sign-in at {self.at:%H:%M:%S}"
