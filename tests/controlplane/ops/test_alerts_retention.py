"""Old alerts and notifications go; open and waiting ones stay."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.models import Alert, Delivery
from controlplane.alerts.services import handling
from controlplane.alerts.services.channels import ChannelSpec, create_channel
from controlplane.alerts.services.raising import raise_alert
from controlplane.ops.retention import prune
from tests.controlplane.alerts.conftest import finding

pytestmark = pytest.mark.django_db(databases="__all__")


def test_what_is_long_over_goes_and_what_is_open_stays() -> None:
    from controlplane.alerts.models import ChannelKind

    spec = ChannelSpec(name="hook", kind=ChannelKind.WEBHOOK, settings={"url": "http://127.0.0.1:9/"})
    create_channel(actor=SYSTEM, spec=spec)
    long_ago = timezone.now() - timedelta(days=200)
    over, still_open = raise_alert(finding=finding("gpu-1")), raise_alert(finding=finding("gpu-2"))
    handling.resolve(actor=SYSTEM, alert_id=over.pk)
    Alert.objects.filter(pk=over.pk).update(resolved_at=long_ago)
    Alert.objects.filter(pk=still_open.pk).update(started_at=long_ago)
    counts = prune()
    assert counts["resolved alerts"] >= 1
    assert list(Alert.objects.all()) == [still_open]
    assert not Delivery.objects.filter(alert=over.pk).exists()
