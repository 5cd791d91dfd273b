"""Slack: one message an alert, which later notifications change.

It takes a bot token with the scope ``chat:write`` and a channel that the bot was invited to; incoming webhooks cannot
change what they have posted.

Slack has no idempotency keys: a post that was sent by a process that died, or that was never answered, may be there.
Each message therefore carries the id of its notification as metadata, and before a first message is posted once more
it is looked for in the channel. That takes the scope ``channels:history`` (``groups:history`` in a private channel) and
the channel's id instead of its name; without them the message may be there twice, saying the same.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from controlplane.alerts.models import ChannelKind, Occasion
from controlplane.alerts.notice import Notice
from controlplane.alerts.notifiers.base import (
    ChannelSettings,
    DeliveryFailed,
    MessageRejected,
    Notifier,
    Outgoing,
    Receipt,
)
from controlplane.alerts.notifiers.outbound import post, url_faults
from router.unreadable import UNREADABLE

_EVENT = "pointsman_notification"
_PAGE = 30
_MOST_PAGES = 5
_CLOCKS_APART_S = 30.0
"""How far Slack's clock may be behind ours."""
_NEVER_AGAIN = frozenset(
    {
        "account_inactive",
        "channel_not_found",
        "invalid_auth",
        "is_archived",
        "missing_scope",
        "no_permission",
        "not_authed",
        "not_in_channel",
        "token_expired",
        "token_revoked",
    }
)
_WORDS = {
    Occasion.FIRING: "Firing",
    Occasion.ACKNOWLEDGED: "Acknowledged",
    Occasion.RESOLVED: "Resolved",
    Occasion.TEST: "Test",
}
_SIGNS = {
    Occasion.FIRING: ":rotating_light:",
    Occasion.ACKNOWLEDGED: ":eyes:",
    Occasion.RESOLVED: ":white_check_mark:",
    Occasion.TEST: ":wave:",
}


class SlackSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bot's token and the channel to write to."""

    token: str
    channel: str
    api_url: str = "https://slack.com/api"

    def faults(self) -> Mapping[str, list[str]]:
        """Return everything that cannot be, by field."""
        blank = ["It must not be blank."]
        return {
            "token": [] if self.token.strip() and self.token.isascii() else blank,
            "channel": [] if self.channel.strip() else blank,
            "api_url": url_faults(self.api_url),
        }

    def target(self) -> str:
        """Return the channel."""
        return self.channel


class SlackAnswer(msgspec.Struct, frozen=True):
    """As much of an answer of Slack as matters."""

    ok: bool
    error: str = ""
    ts: str = ""
    channel: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    event_type: str = ""
    event_payload: dict[str, Any] = {}


class _Said(msgspec.Struct, frozen=True):
    ts: str = ""
    metadata: _Metadata = _Metadata()


class _More(msgspec.Struct, frozen=True):
    next_cursor: str = ""


class SlackHistory(msgspec.Struct, frozen=True):
    """A page of a channel's messages, newest first."""

    ok: bool
    messages: tuple[_Said, ...] = ()
    response_metadata: _More = _More()


class SlackNotifier(Notifier):
    """Posts a message, and changes it."""

    kind = ChannelKind.SLACK
    settings_type = SlackSettings
    secret_fields = frozenset({"token"})
    occasions = frozenset(Occasion)

    def compose(self, notice: Notice, channel: str) -> str:
        """Return text and blocks; where they go is added when they are sent."""
        return msgspec.json.encode(_message(notice)).decode()

    async def send(self, message: Outgoing, settings: SlackSettings) -> Receipt:
        """Post the first message of an alert, change it for every later one."""
        if message.reference is None and (ts := await _posted_before(message, settings)) is not None:
            return Receipt(200, "found in the channel", f"{settings.channel}/{ts}")
        document = {**msgspec.json.decode(message.body), "channel": settings.channel}
        method = "chat.postMessage"
        if message.reference is not None:
            method = "chat.update"
            document["channel"], _, document["ts"] = message.reference.partition("/")
        else:
            document["metadata"] = {"event_type": _EVENT, "event_payload": {"notification": str(message.delivery_id)}}
        headers = {
            "Authorization": f"Bearer {settings.token}",
            "Content-Type": "application/json; charset=utf-8",
            "Idempotency-Key": str(message.delivery_id),
        }
        answer = await post(f"{settings.api_url.rstrip('/')}/{method}", msgspec.json.encode(document), headers)
        try:
            said = msgspec.json.decode(answer.content, type=SlackAnswer)
        except UNREADABLE as error:
            raise DeliveryFailed("Slack's answer cannot be read.", status=answer.status_code) from error
        if not said.ok:
            permanent = said.error in _NEVER_AGAIN
            raise DeliveryFailed(f"Slack says: {said.error}.", permanent=permanent, status=answer.status_code)
        return Receipt(answer.status_code, method, message.reference or f"{said.channel}/{said.ts}")


async def _posted_before(message: Outgoing, settings: SlackSettings) -> str | None:
    """Return the ``ts`` of the message that an earlier attempt posted; None when there is none, or nobody may look."""
    if message.tried_since is None:
        return None
    question = {
        "channel": settings.channel,
        "oldest": f"{message.tried_since.timestamp() - _CLOCKS_APART_S:.6f}",
        "include_all_metadata": "true",
        "limit": str(_PAGE),
    }
    for _ in range(_MOST_PAGES):
        page = await _history(question, settings)
        for said in page.messages:
            if said.metadata.event_payload.get("notification") == str(message.delivery_id):
                return said.ts
        question["cursor"] = page.response_metadata.next_cursor
        if not page.ok or not question["cursor"]:
            break
    return None


async def _history(question: Mapping[str, str], settings: SlackSettings) -> SlackHistory:
    headers = {"Authorization": f"Bearer {settings.token}", "Content-Type": "application/x-www-form-urlencoded"}
    url = f"{settings.api_url.rstrip('/')}/conversations.history"
    try:
        answer = await post(url, urlencode(question).encode(), headers)
        return msgspec.json.decode(answer.content, type=SlackHistory)
    except (MessageRejected, *UNREADABLE):
        return SlackHistory(ok=False)


def _message(notice: Notice) -> dict[str, Any]:
    head = f"{_SIGNS[notice.occasion]} *{_WORDS[notice.occasion]}: {_escaped(notice.title)}*"
    lines = [head, _escaped(notice.summary)]
    if notice.by and notice.occasion in {Occasion.ACKNOWLEDGED, Occasion.RESOLVED}:
        lines.append(f"by {_escaped(notice.by)}")
    context = " · ".join(f"{name}: {_escaped(value)}" for name, value in sorted(notice.labels.items()))
    link = f"<{notice.url}|Open in Pointsman>"
    return {
        "text": f"{_WORDS[notice.occasion]}: {notice.summary}",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:3000]}},
            {
                "type": "context",
                "elements": [{"type": "mrkdwn", "text": " · ".join(part for part in (context, link) if part)[:3000]}],
            },
        ],
    }


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
