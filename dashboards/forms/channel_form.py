"""Making and changing channels by hand, one form a kind."""

from collections.abc import Mapping
from typing import Any

from django import forms

from controlplane.alerts.matchers import parse_matcher_lines
from controlplane.alerts.models import Channel, ChannelKind
from controlplane.alerts.notifiers.email import Security
from controlplane.alerts.services.channels import ChannelSpec, shown_settings
from controlplane.errors import Invalid


def _secret(label: str, help_text: str = "") -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, help_text=help_text, required=False, widget=widget)


class ChannelForm(forms.Form):
    """What every channel has. A secret that is left empty stays as it is."""

    kind: ChannelKind
    setting_names: tuple[str, ...] = ()
    name = forms.CharField(label="Name", max_length=100, help_text="By which you know it here and in the audit log")

    def __init__(self, data: Mapping[str, Any] | None = None, channel: Channel | None = None) -> None:
        initial = {} if channel is None else self.initial_of(channel)
        super().__init__(data, initial=initial, label_suffix="")
        self.fields["matchers"] = forms.CharField(
            label="Only alerts that match",
            required=False,
            widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "mono"}),
            help_text='One condition a line, as in severity="critical"; empty: every alert',
        )
        self.is_new = channel is None

    def initial_of(self, channel: Channel) -> dict[str, Any]:
        """Return what the form shows of a channel."""
        lines = "\n".join(str(matcher) for matcher in channel.conditions)
        return {"name": channel.name, "matchers": lines, **shown_settings(channel)}

    def clean_matchers(self) -> Any:
        """Read the lines."""
        try:
            return parse_matcher_lines(self.cleaned_data["matchers"])
        except Invalid as error:
            raise forms.ValidationError(error.fields["matchers"]) from error

    def spec(self) -> ChannelSpec:
        """Return the wanted settings; only after ``is_valid()``."""
        values = {name: self.cleaned_data[name] for name in self.setting_names}
        settings = {name: value for name, value in values.items() if value not in ("", None)}
        return ChannelSpec(
            name=self.cleaned_data["name"],
            kind=self.kind,
            settings=settings,
            matchers=self.cleaned_data["matchers"],
        )

    def add_faults(self, faults: dict[str, list[str]]) -> None:
        """Show what a service found wrong, at the field where it is wrong."""
        for field, texts in faults.items():
            name = field.removeprefix("settings.")
            for text in texts:
                self.add_error(name if name in self.fields else None, text)


class WebhookForm(ChannelForm):
    """A webhook."""

    kind = ChannelKind.WEBHOOK
    setting_names = ("url", "signing_key", "authorization")
    url = _secret("URL", "Gets Alertmanager's JSON (version 4) by POST; kept sealed, for paths often are secrets")
    signing_key = _secret("Signing key", "HMAC-SHA256 of timestamp and body; at least 16 characters")
    authorization = _secret("Authorization", "Sent as it is, as in: Bearer TOKEN")


class SlackForm(ChannelForm):
    """A Slack channel."""

    kind = ChannelKind.SLACK
    setting_names = ("token", "channel")
    token = _secret("Bot token", "Begins with xoxb-, with the scope chat:write")
    channel = forms.CharField(label="Channel", max_length=100, help_text="The bot must have been invited to it")


class EmailForm(ChannelForm):
    """Mails."""

    kind = ChannelKind.EMAIL
    setting_names = ("to", "sender", "host", "port", "security", "username", "password")
    to = forms.CharField(label="To", help_text="Addresses, apart by commas")
    sender = forms.EmailField(label="From", help_text="An address that the server lets you send as")
    host = forms.CharField(label="SMTP server", max_length=253, help_text="Its name or address, without a port")
    port = forms.IntegerField(
        label="Port", min_value=1, max_value=65_535, initial=587, help_text="587 with starttls, 465 with tls"
    )
    security = forms.ChoiceField(
        label="Security",
        choices=[(s.value, s.value) for s in Security],
        initial="starttls",
        help_text="How the connection is protected; a password needs one that is",
    )
    username = forms.CharField(
        label="User name", required=False, max_length=200, help_text="Empty where the server asks for none"
    )
    password = _secret("Password", "Kept sealed, never shown")

    def initial_of(self, channel: Channel) -> dict[str, Any]:
        """Write the receivers as one text."""
        found = super().initial_of(channel)
        return {**found, "to": ", ".join(found.get("to", []))}

    def clean_to(self) -> list[str]:
        """Read the receivers."""
        return [part.strip() for part in self.cleaned_data["to"].split(",") if part.strip()]


CHANNEL_FORMS: Mapping[str, type[ChannelForm]] = {form.kind.value: form for form in (WebhookForm, SlackForm, EmailForm)}
