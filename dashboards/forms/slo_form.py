"""The targets of a workload."""

from collections.abc import Mapping
from typing import Any

from django import forms


class SloForm(forms.Form):
    """An empty target is none; services check the rest."""

    ttft_s = forms.FloatField(required=False, label="TTFT target", help_text="Seconds; empty for no target")
    ttft_percentile = forms.FloatField(required=False, label="for this share of requests", help_text="Percent")
    tpot_s = forms.FloatField(required=False, label="TPOT target", help_text="Seconds; empty for no target")
    tpot_percentile = forms.FloatField(required=False, label="for this share of requests", help_text="Percent")

    def settings(self) -> Mapping[str, Any]:
        """Return the wanted targets; only after ``is_valid()``."""
        values = self.cleaned_data
        return {name: value for name, value in values.items() if value is not None or name.endswith("_s")}
