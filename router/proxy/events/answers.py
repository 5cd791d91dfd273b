"""What comes of an answer once it has ended: its reported hit is checked, and its text becomes a lesson."""

from collections.abc import Callable

from router.proxy.events.answer_copy import AnswerCopy
from router.proxy.events.learning import Learner, Lesson
from router.proxy.events.trust import EventTrust
from router.proxy.intake import Intake
from router.proxy.ledger import Ended, Outcome
from router.proxy.link import Link
from router.proxy.plane import Plane
from router.proxy.usage import Usage

_LEARNT_FROM = frozenset({Outcome.OK, Outcome.CANCELLED, Outcome.BROKEN})
"""How requests end whose prompt an engine has computed; only of the first is the answer what a client goes on with."""


class Answers:
    """Told of every request that ended while any instance is followed."""

    def __init__(self, plane: Plane, trust: EventTrust, learner: Learner, on_bad: Callable[[Link], None]) -> None:
        self._plane = plane
        self._trust = trust
        self._learner = learner
        self._on_bad = on_bad

    def ended(self, intake: Intake, ended: Ended, usage: Usage | None) -> None:
        """Take in a request that has ended."""
        answer, instance = ended.answer, ended.instance
        copy = None if answer is None or not isinstance(answer.tail, AnswerCopy) else answer.tail
        if copy is not None:
            copy.release()
        link = None if instance is None else self._plane.links.get(instance.slot)
        if link is None or link.instance is not instance:
            return
        if usage is not None:
            self._check(link, intake, ended, usage)
        if answer is not None and copy is not None and link.copies is not None and ended.outcome in _LEARNT_FROM:
            said = copy.bytes() if copy.whole and ended.outcome is Outcome.OK else None
            self._learner.offer(link, self._lesson(link, intake, answer.is_stream, said, usage))

    def _check(self, link: Link, intake: Intake, ended: Ended, usage: Usage) -> None:
        """Compare what was predicted from events with what was reported."""
        chosen = None if ended.decision is None else ended.decision.chosen
        block = self._plane.fleet.events.block_tokens(link.instance.slot)
        reported = usage.cached_tokens
        if chosen is None or not chosen.exact or reported is None or block is None:
            return
        known, foretold = intake.known, chosen.hit_tokens
        if known is not None and foretold + block > known.tokens:
            reported = min(reported, foretold)  # no more of the prompt was known: events had no say in the rest
        model = intake.request.model
        bad = self._trust.record(
            link.instance.config.id,
            model if model in link.instance.view.models else "",  # else clients could make up any number of names
            predicted=foretold,
            reported=reported,
            prompt=usage.prompt_tokens,
            block=block,
        )
        if bad:
            self._on_bad(link)

    def _lesson(self, link: Link, intake: Intake, streamed: bool, said: bytes | None, usage: Usage | None) -> Lesson:
        return Lesson(
            route=intake.route,
            model=intake.request.model,
            body=intake.body,
            answer=said,
            streamed=streamed,
            adapter=self._adapter(link, intake.request.model),
            prompt_bytes=intake.text_bytes,
            prompt_tokens=None if usage is None else usage.prompt_tokens,
        )

    def _adapter(self, link: Link, model: str) -> str | None:
        """Return the name of the adapter that a model is, by the engine's own list; None for a base model."""
        cards = self._plane.cards.of(link.instance.config.id)
        return next((model for card in cards if card["id"] == model and card.get("parent")), None)
