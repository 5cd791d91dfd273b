"""Webhooks: the JSON of Alertmanager's version 4, signed.

``X-Pointsman-Signature: v1=HEX`` is the HMAC-SHA256, under the channel's key, of ``TIMESTAMP.BODY``, where TIMESTAMP
is what ``X-Pointsman-Timestamp`` says: seconds since the epoch at which this attempt was made. ``Idempotency-Key`` is
the same in every attempt of one notification, and so is the body.
"""

import hashlib
import hmac
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from controlplane.alerts.models import ChannelKind, Occasion
from controlplane.alerts.notice import Notice
from controlplane.alerts.notifiers.base import ChannelSettings, Notifier, Outgoing, Receipt
from controlplane.alerts.notifiers.outbound import post, shown_url, url_faults
from controlplane.public_address import public_address

_NEVER = "0001-01-01T00:00:00Z"
_LEAST_KEY = 16


class WebhookSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to post, the key to sign with, and what to send as ``Authorization``."""

    url: str
    signing_key: str = ""
    authorization: str = ""

    def faults(self) -> Mapping[str, list[str]]:
        """Return everything that cannot be, by field."""
        short = bool(self.signing_key) and len(self.signing_key) < _LEAST_KEY
        printable = all(0x20 <= ord(character) < 0x7F for character in self.authorization)
        return {
            "url": url_faults(self.url),
            "signing_key": [f"It must have at least {_LEAST_KEY} characters."] if short else [],
            "authorization": [] if printable else ["It must be printable ASCII."],
        }

    def target(self) -> str:
        """Return the host; the path may be a secret."""
        return shown_url(self.url)


class WebhookNotifier(Notifier):
    """Posts JSON."""

    kind = ChannelKind.WEBHOOK
    settings_type = WebhookSettings
    secret_fields = frozenset({"url", "signing_key", "authorization"})
    occasions = frozenset({Occasion.FIRING, Occasion.RESOLVED, Occasion.TEST})

    def compose(self, notice: Notice, channel: str) -> str:
        """Return the JSON that Alertmanager's receivers read."""
        return msgspec.json.encode(payload(notice, channel)).decode()

    async def send(self, message: Outgoing, settings: WebhookSettings) -> Receipt:
        """Post the body, signed now."""
        body = message.body.encode()
        headers = {"Idempotency-Key": str(message.delivery_id)}
        if settings.authorization:
            headers["Authorization"] = settings.authorization
        if settings.signing_key:
            now = str(int(time.time()))
            headers["X-Pointsman-Timestamp"] = now
            headers["X-Pointsman-Signature"] = f"v1={signature(settings.signing_key, now, body)}"
        answer = await post(settings.url, body, headers)
        return Receipt(answer.status_code, f"answered {answer.status_code}")


def signature(key: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a body at a time, in hex."""
    return hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def payload(notice: Notice, channel: str) -> dict[str, Any]:
    """Return the document of one notice."""
    over = notice.occasion == Occasion.RESOLVED
    status = "resolved" if over else "firing"
    labels = {"alertname": notice.kind, "severity": notice.severity, **notice.labels}
    annotations = {"summary": notice.summary, "description": notice.meaning}
    if notice.what_to_do:
        annotations["what_to_do"] = "\n".join(notice.what_to_do)
    return {
        "version": "4",
        "groupKey": f'{{}}:{{fingerprint="{notice.fingerprint}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": channel,
        "groupLabels": {"alertname": notice.kind},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": public_address(),
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": _rfc3339(notice.started_at),
                "endsAt": _rfc3339(notice.ended_at) if over and notice.ended_at is not None else _NEVER,
                "generatorURL": notice.url,
                "fingerprint": notice.fingerprint[:16],
            }
        ],
    }


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
