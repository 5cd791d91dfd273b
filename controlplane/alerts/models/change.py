"""One number that grows with every change that somebody who looks at alerts should see."""

from django.db import models


class Change(models.Model):
    """One row; browsers' sockets look at it to learn of changes that other processes made."""

    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"change {self.number}"
