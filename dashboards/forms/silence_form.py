"""Making a silence by hand."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from controlplane.alerts.matchers import Matcher, parse_matcher_lines
from controlplane.errors import Invalid

DURATIONS = (
    ("1800", "30 minutes"),
    ("7200", "2 hours"),
    ("28800", "8 hours"),
    ("86400", "1 day"),
    ("604800", "7 days"),
)


class SilenceForm(forms.Form):
    """Matchers, an end and a reason."""

    matchers = forms.CharField(
        label="Which alerts",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text='One condition a line, all must hold: kind="stale_metrics", instance=~"gpu-[12]"',
    )
    duration = forms.ChoiceField(
        label="For", choices=DURATIONS, initial="7200", help_text="It ends by itself; end it sooner in the list"
    )
    comment = forms.CharField(label="Why", max_length=500, help_text="Others will read this when they miss the alert")

    def __init__(self, data: Mapping[str, Any] | None = None, initial: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial=dict(initial or {}), label_suffix="")

    def clean_matchers(self) -> Sequence[Matcher]:
        """Read the lines."""
        try:
            return parse_matcher_lines(self.cleaned_data["matchers"])
        except Invalid as error:
            raise forms.ValidationError(error.fields["matchers"]) from error

    def ends_at(self) -> datetime:
        """Return the end; only after ``is_valid()``."""
        return timezone.now().astimezone(UTC) + timedelta(seconds=int(self.cleaned_data["duration"]))
