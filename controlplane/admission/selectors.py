"""What reads the row of the admission app."""

from controlplane.admission.models import AdmissionSettings

ONLY_PK = 1


def admission() -> AdmissionSettings:
    """Return the settings; the router's defaults, as revision 0, while nobody has set anything."""
    return AdmissionSettings.objects.filter(pk=ONLY_PK).first() or AdmissionSettings(pk=ONLY_PK)
