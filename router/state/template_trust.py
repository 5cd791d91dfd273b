"""Whether chat templates keep the promises of marks: some render an answer differently once more messages follow.

A template that drops the reasoning of earlier answers is the usual case. What was seen lately decides; a promise that
was never put to the test is believed.
"""

from router.state.text_marks import Promise

_TESTED = frozenset({Promise.END, Promise.PROMPT})
_MOST = 4
_PENALTY = 3


class TemplateTrust:
    """Remembers per model and promise whether it held: up by one each time it does, down by three when it does not."""

    def __init__(self) -> None:
        self._score: dict[tuple[str, Promise], int] = {}

    def saw(self, model: str, promise: Promise, *, held: bool) -> None:
        """Take in whether a promise held when a conversation went on."""
        if promise in _TESTED:
            before = self._score.get((model, promise), 0)
            self._score[model, promise] = min(_MOST, before + 1) if held else max(-_MOST, before - _PENALTY)

    def holds(self, model: str, promise: Promise) -> bool:
        """Say whether a promise of this kind is to be believed."""
        return promise not in _TESTED or self._score.get((model, promise), 0) >= 0
