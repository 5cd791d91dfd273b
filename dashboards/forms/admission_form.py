"""What happens when the fleet is full; the words are those of the settings themselves."""

from collections.abc import Mapping
from typing import Any

from django import forms
from msgspec.structs import asdict

from controlplane.field_docs import field_docs
from router.config import AdmissionConfig

_HELP = field_docs(AdmissionConfig)


def _number(step: str, least: str, placeholder: str = "") -> forms.NumberInput:
    return forms.NumberInput(attrs={"class": "input", "step": step, "min": least, "placeholder": placeholder})


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


class AdmissionForm(forms.Form):
    """Every setting; services check the values."""

    instance_requests = forms.IntegerField(
        required=False,
        label="An instance is full at",
        help_text=_HELP["instance_requests"],
        widget=_number("1", "1", "never"),
    )
    queue_requests = forms.IntegerField(
        label="Requests that may wait", help_text=_HELP["queue_requests"], widget=_number("1", "1")
    )
    queue_wait_s = forms.FloatField(
        label="Longest wait, seconds", help_text=_HELP["queue_wait_s"], widget=_number("any", "0")
    )
    batch_window_ms = forms.FloatField(
        label="Decide jointly within, ms", help_text=_HELP["batch_window_ms"], widget=_number("any", "0")
    )

    def __init__(self, data: Mapping[str, Any] | None = None, rule: AdmissionConfig | None = None) -> None:
        values = {} if rule is None else asdict(rule)
        super().__init__(data, initial={name: _text(value) for name, value in values.items()}, label_suffix="")

    def rule(self) -> AdmissionConfig:
        """Return the wanted settings; only after ``is_valid()``."""
        return AdmissionConfig(**self.cleaned_data)

    def differing(self, rule: AdmissionConfig) -> list[tuple[str, str]]:
        """Return the fields that a rule has otherwise, with its values; only after ``is_valid()``."""
        return [
            (name, _text(value) or "never")
            for name, value in asdict(rule).items()
            if value != getattr(self.rule(), name)
        ]

    def add_faults(self, faults: Mapping[str, list[str]]) -> None:
        """Show what a service found wrong, at the field where it is wrong."""
        for field, texts in faults.items():
            for text in texts:
                self.add_error(field if field in self.fields else None, text)
