"""What engines say that they serve (``GET /v1/models``), by instance."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

Card = Mapping[str, Any]


class ModelCards:
    """The cards of each instance, as it last told them; ids are always strings."""

    def __init__(self) -> None:
        self._cards: dict[str, tuple[Card, ...]] = {}

    def of(self, instance_id: str) -> Sequence[Card]:
        """Return an instance's cards; none until it was asked."""
        return self._cards.get(instance_id, ())

    @property
    def adapters(self) -> frozenset[str]:
        """Names that any instance lists with a parent: adapters of another model."""
        return frozenset(card["id"] for cards in self._cards.values() for card in cards if card.get("parent"))

    def learn(self, instance_id: str, cards: tuple[Card, ...]) -> None:
        """Take in what an instance said."""
        self._cards[instance_id] = cards

    def keep_only(self, instance_ids: set[str]) -> None:
        """Forget instances that are gone."""
        self._cards = {i: cards for i, cards in self._cards.items() if i in instance_ids}


def parse_cards(body: bytes) -> tuple[Card, ...]:
    """Read a list of models.

    :raises ValueError: when it is none.
    """
    document = orjson.loads(body)
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list):
        raise ValueError("a list of models has a member data")
    return tuple(card for card in data if isinstance(card, dict) and isinstance(card.get("id"), str))
