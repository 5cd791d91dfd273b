"""What a notifier is: it composes a body once, and sends that body as often as it takes.

::

    DeliveryFailed             tried again later
    ├── Refused                nothing is there (401, 403, 404): several in a row disable the channel
    └── permanent=True         will never work as it is set up (410, a key that was revoked): disables the channel
    MessageRejected            the receiver will never take this one message (400, 413, 422); the channel goes on
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from controlplane.alerts.models import ChannelKind, Occasion
from controlplane.alerts.notice import Notice
from controlplane.errors import Invalid
from controlplane.plain_words import in_plain_words

ATTEMPT_TIMEOUT_S = 10.0
"""Limit of one attempt, from the look-up of the name to the last byte of the answer."""


class DeliveryFailed(Exception):
    """An attempt failed."""

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        refused: bool = False,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.refused = refused
        self.status = status
        self.retry_after_s = retry_after_s


class MessageRejected(DeliveryFailed):
    """The receiver will not take this message, however often it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One attempt. ``reference`` is what the channel called the alert's first message, where there was one."""

    delivery_id: UUID
    occasion: Occasion
    alert_id: UUID | None
    body: str
    reference: str | None = None
    tried_since: datetime | None = None
    """Since when it may have arrived without our knowing: an earlier attempt was killed or got no answer. None: this is
    the first attempt."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the receiver said; ``reference`` is kept for later messages of the same alert."""

    status: int | None
    detail: str = ""
    reference: str | None = None


class ChannelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the settings of a kind of channel."""

    def faults(self) -> Mapping[str, list[str]]:
        """Return everything that cannot be, by field."""
        return {}

    def target(self) -> str:
        """Return what people may see of where it goes."""
        raise NotImplementedError


class Notifier(ABC):
    """One kind of channel. Stateless: settings and messages are parameters.

    ``occasions`` are those that its receivers want to know of. ``secret_fields`` are never shown again.
    """

    kind: ClassVar[ChannelKind]
    settings_type: ClassVar[type[ChannelSettings]]
    secret_fields: ClassVar[frozenset[str]]
    occasions: ClassVar[frozenset[Occasion]]

    @abstractmethod
    def compose(self, notice: Notice, channel: str) -> str:
        """Return the body of a notification. Pure: the same notice always gives the same body."""

    @abstractmethod
    async def send(self, message: Outgoing, settings: Any) -> Receipt:
        """Send a body once.

        :raises DeliveryFailed: saying whether trying again may help.
        """

    def parse(self, values: Mapping[str, Any]) -> ChannelSettings:
        """Return the settings that some JSON stands for.

        :raises Invalid: naming every field that is at fault.
        """
        try:
            parsed = msgspec.convert(values, type=self.settings_type)
        except msgspec.ValidationError as error:
            raise Invalid({"settings": [in_plain_words(error)]}) from error
        if faults := {f"settings.{name}": texts for name, texts in parsed.faults().items() if texts}:
            raise Invalid(faults)
        return parsed
