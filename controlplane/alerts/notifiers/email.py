"""E-mail over SMTP; all mails about one alert are one thread in a reader."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from enum import StrEnum
from functools import partial

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from controlplane.alerts.models import ChannelKind, Occasion
from controlplane.alerts.notice import Notice
from controlplane.alerts.notifiers.base import (
    ATTEMPT_TIMEOUT_S,
    ChannelSettings,
    DeliveryFailed,
    MessageRejected,
    Notifier,
    Outgoing,
    Receipt,
)
from controlplane.alerts.notifiers.outbound import checked_address
from controlplane.fleet.address import host_fault

_MAX_RECEIVERS = 50
_STEP_TIMEOUT_S = 5.0
_OK = 250
_FOR_GOOD = range(500, 600)


class Security(StrEnum):
    """How the connection is protected."""

    TLS = "tls"
    STARTTLS = "starttls"
    NONE = "none"


class EmailSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who gets it, who it is from, and the server that takes it."""

    to: list[str]
    sender: str
    host: str
    port: int = 587
    security: Security = Security.STARTTLS
    username: str = ""
    password: str = ""

    def faults(self) -> Mapping[str, list[str]]:
        """Return everything that cannot be, by field."""
        found = {
            "to": [f"{address!r} is no e-mail address." for address in self.to if not _is_address(address)],
            "sender": [] if _is_address(self.sender) else [f"{self.sender!r} is no e-mail address."],
            "host": [reason] if (reason := host_fault(self.host)) else [],
            "port": [] if 1 <= self.port <= 65_535 else ["It must be from 1 to 65535."],
            "password": [],
        }
        if not 1 <= len(self.to) <= _MAX_RECEIVERS:
            found["to"].append(f"There must be 1 to {_MAX_RECEIVERS}.")
        if not self.host.strip():
            found["host"].append("It must not be blank.")
        if self.password and self.security is Security.NONE:
            found["password"].append("It would travel in the clear; use tls or starttls.")
        return found

    def target(self) -> str:
        """Return who gets it."""
        return ", ".join(self.to)[:300]


class EmailBody(msgspec.Struct, frozen=True):
    """What is fixed of a mail."""

    subject: str
    text: str
    thread: str
    """Identity of the alert, for the reader's threads; empty for a test."""


class EmailNotifier(Notifier):
    """Sends mails."""

    kind = ChannelKind.EMAIL
    settings_type = EmailSettings
    secret_fields = frozenset({"password"})
    occasions = frozenset({Occasion.FIRING, Occasion.RESOLVED, Occasion.TEST})

    def compose(self, notice: Notice, channel: str) -> str:
        """Return subject and text."""
        word = {Occasion.RESOLVED: "Resolved", Occasion.TEST: "Test"}.get(notice.occasion, notice.severity.capitalize())
        subject = f"[Pointsman] {word}: {notice.summary}"
        steps = [f"{number}. {step}" for number, step in enumerate(notice.what_to_do, 1)]
        labels = [f"{name}: {value}" for name, value in sorted(notice.labels.items())]
        times = [f"Since {notice.started_at:%Y-%m-%d %H:%M:%S} UTC"]
        if notice.occasion == Occasion.RESOLVED and notice.ended_at is not None:
            times.append(f"Resolved {notice.ended_at:%Y-%m-%d %H:%M:%S} UTC by {notice.by}")
        parts = [notice.summary, "\n".join(times), notice.meaning, "\n".join(labels)]
        if steps and notice.occasion != Occasion.RESOLVED:
            parts.append("What to do:\n" + "\n".join(steps))
        parts.append(notice.url)
        thread = "" if notice.alert_id is None else str(notice.alert_id)
        body = EmailBody(" ".join(subject.split())[:200], "\n\n".join(part for part in parts if part) + "\n", thread)
        return msgspec.json.encode(body).decode()

    async def send(self, message: Outgoing, settings: EmailSettings) -> Receipt:
        """Hand one mail to the server."""
        mail = _mail(message, settings)
        address = await checked_address(settings.host, settings.port)
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
                return await asyncio.to_thread(partial(_hand_over, mail, settings, address))
        except TimeoutError:
            raise DeliveryFailed(f"{settings.host} did not take the mail in {ATTEMPT_TIMEOUT_S:g} s.") from None


def _mail(message: Outgoing, settings: EmailSettings) -> EmailMessage:
    body = msgspec.json.decode(message.body, type=EmailBody)
    domain = settings.sender.rpartition("@")[2]
    mail = EmailMessage()
    mail["From"] = Address("Pointsman", addr_spec=settings.sender)
    mail["To"] = ", ".join(settings.to)
    mail["Subject"] = body.subject
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{message.delivery_id}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    if body.thread:
        mail["References"] = mail["In-Reply-To"] = f"<alert-{body.thread}@{domain}>"
    mail.set_content(body.text)
    return mail


def _hand_over(mail: EmailMessage, settings: EmailSettings, address: str) -> Receipt:
    try:
        with _connected(settings, address) as server:
            if settings.username:
                server.login(settings.username, settings.password)
            server.send_message(mail)
    except smtplib.SMTPAuthenticationError as error:
        raise DeliveryFailed(f"The server refuses the password: {error.smtp_code}.", permanent=True) from error
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        raise _refusal(f"Nobody is taken as receiver: {codes}.", codes[0]) from error
    except smtplib.SMTPResponseException as error:
        raise _refusal(f"The server says {error.smtp_code}.", error.smtp_code) from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryFailed(f"Cannot hand the mail to {settings.host}: {error or type(error).__name__}.") from error
    return Receipt(_OK, f"taken by {settings.host}")


def _connected(settings: EmailSettings, address: str) -> smtplib.SMTP:
    """Connect to the address that was checked, and prove the name that was given."""
    context = ssl.create_default_context()
    own_name = settings.sender.rpartition("@")[2]
    if settings.security is Security.TLS:
        return _PinnedTls(address, settings.host, settings.port, own_name, context)
    server = _Pinned(address, settings.host, settings.port, own_name)
    if settings.security is Security.STARTTLS:
        server.starttls(context=context)
    return server


class _Pinned(smtplib.SMTP):
    """A connection to an address, under a name."""

    def __init__(self, address: str, name: str, port: int, own_name: str) -> None:
        self._address = address
        super().__init__(name, port, own_name, _STEP_TIMEOUT_S)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return socket.create_connection((self._address, port), timeout)


class _PinnedTls(smtplib.SMTP_SSL):
    """The same, with TLS from the start."""

    def __init__(self, address: str, name: str, port: int, own_name: str, context: ssl.SSLContext) -> None:
        self._address = address
        super().__init__(name, port, own_name, timeout=_STEP_TIMEOUT_S, context=context)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = socket.create_connection((self._address, port), timeout)
        return self.context.wrap_socket(plain, server_hostname=host)


def _refusal(text: str, code: int) -> DeliveryFailed:
    return MessageRejected(text, status=code) if code in _FOR_GOOD else DeliveryFailed(text, status=code)


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True
