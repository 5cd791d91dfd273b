"""What is wrong with a form, in one line, for pages that show it above rather than at the field."""

from django import forms


def one_line(form: forms.Form) -> str:
    """Return every fault of a form."""
    return " ".join(f"{field}: {' '.join(map(str, faults))}" for field, faults in form.errors.items())
