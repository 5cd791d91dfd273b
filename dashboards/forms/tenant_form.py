"""A tenant and its limits."""

from collections.abc import Mapping
from typing import Any

from django import forms


class TenantForm(forms.Form):
    """Limits that are left empty are none; services check the rest."""

    description = forms.CharField(required=False, max_length=10_000)
    active = forms.BooleanField(required=False)
    tokens_per_minute = forms.IntegerField(required=False)
    requests_per_minute = forms.IntegerField(required=False)
    concurrent = forms.IntegerField(required=False)

    def settings(self) -> Mapping[str, Any]:
        """Return the wanted settings; only after ``is_valid()``."""
        return self.cleaned_data
