"""Router workers that answer a question about a request as soon as it is asked."""

from collections.abc import Mapping

import pytest

from controlplane.decisions import explaining, questions
from controlplane.decisions.models import Question
from router.snapshot import DecisionSample, Explained


def have_answers(monkeypatch: pytest.MonkeyPatch, decisions: Mapping[str, DecisionSample | None]) -> None:
    """Let each worker answer whatever is asked from now on: with its decision, or that it remembers none."""

    def asked(request_id: str) -> Question:
        question = questions.ask(request_id)
        for worker, decision in decisions.items():
            questions.take_answers(worker, [Explained(request_id, decision)])
        return question

    monkeypatch.setattr(explaining, "ask", asked)
