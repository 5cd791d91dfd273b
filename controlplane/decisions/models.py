"""Rows of the decisions app."""

from django.db import models


class KeptDecision(models.Model):
    """The newest decision about a request that somebody looked at: its link outlives what routers remember."""

    request_id = models.CharField(max_length=128, primary_key=True)
    body = models.BinaryField()
    """A :class:`router.snapshot.DecisionSample` as JSON."""
    kept_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return self.request_id


class Question(models.Model):
    """A request that somebody wants explained; asked of every worker, whichever web process it talks to."""

    request_id = models.CharField(max_length=128, unique=True)
    asked_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.request_id


class Answer(models.Model):
    """One worker's word that it answered a question; what it found is a :class:`KeptDecision`."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="answers")
    worker = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["question", "worker"], name="one_answer_a_worker")]

    def __str__(self) -> str:
        return f"{self.worker} about {self.question_id}"
