"""Notifications on their way: claimed once, in order, retried, given up, and never changed."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.models import AuditEntry
from controlplane.alerts.matchers import Matcher, Operator
from controlplane.alerts.models import Alert, Channel, ChannelKind, Delivery, DeliveryState
from controlplane.alerts.services import handling, outbox
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.channels import ChannelSpec, create_channel, disable_channel, enable_channel
from controlplane.alerts.services.outbox import Attempt, claim, wait_before_s
from controlplane.alerts.services.raising import raise_alert
from controlplane.alerts.services.silencing import end_silence, silence
from tests.controlplane.alerts.conftest import OLGA, finding

pytestmark = pytest.mark.django_db
FINE, BAD = Attempt(0.1, 200, "answered 200"), Attempt(0.1, 500, "The receiver answers 500.")


def occasions() -> list[str]:
    """Return what was put into the outbox, oldest first."""
    return list(Delivery.objects.order_by("sequence").values_list("occasion", flat=True))


def test_a_firing_alert_is_announced_once_and_its_end_as_well(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    assert announce_due() == 1
    assert announce_due() == 0
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    assert occasions() == ["firing", "resolved"]


def test_an_end_is_not_told_to_those_who_never_heard_of_the_beginning(
    channel: Callable[..., Channel], alert: Alert
) -> None:
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    channel()
    assert announce_due() == 0
    assert occasions() == []


def test_a_silenced_alert_is_announced_when_the_silence_ends(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    here = (Matcher("instance", Operator.EQUAL, "gpu-1"),)
    quiet = silence(actor=OLGA, matchers=here, ends_at=timezone.now() + timedelta(hours=1), comment="planned work")
    for _ in range(2):
        assert announce_due() == 0
    assert list(alert.timeline.values_list("what", flat=True)) == ["fired", "not_notified"]
    end_silence(actor=OLGA, silence_id=quiet.pk)
    assert announce_due() == 1
    assert occasions() == ["firing"]


def test_a_channel_is_told_of_what_its_matchers_match(alert: Alert) -> None:
    elsewhere = (Matcher("instance", Operator.EQUAL, "gpu-2"),)
    create_channel(
        actor=OLGA,
        spec=ChannelSpec(
            name="two", kind=ChannelKind.WEBHOOK, settings={"url": "http://127.0.0.1:9/"}, matchers=elsewhere
        ),
    )
    announce_due()
    assert occasions() == []


def test_a_new_channel_is_told_of_what_fires_now(channel: Callable[..., Channel], alert: Alert) -> None:
    announce_due()
    channel()
    assert occasions() == ["firing"]


def test_a_row_is_claimed_by_one_only(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    announce_due()
    assert len(claim(10)) == 1
    assert claim(10) == []


def test_a_claim_that_ran_out_is_taken_over_with_the_same_id_and_body(
    channel: Callable[..., Channel], alert: Alert
) -> None:
    channel()
    announce_due()
    (first,) = claim(10)
    (second,) = claim(10, now=timezone.now() + outbox.LEASE + timedelta(seconds=1))
    assert (second.pk, second.body) == (first.pk, first.body)
    assert second.claim != first.claim
    assert not outbox.delivered(first, FINE)  # too late: it is not its row any more
    assert outbox.delivered(second, FINE)
    assert [row.ok for row in second.log.all()] == [False, True]
    assert "may have arrived" in second.log.all()[0].detail


def test_those_of_one_alert_are_sent_one_after_the_other(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    announce_due()
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    raise_alert(finding=finding("gpu-2"))
    announce_due()
    claimed = claim(10)
    assert [(row.occasion, row.alert_id == alert.pk) for row in claimed] == [("firing", True), ("firing", False)]
    outbox.delivered(claimed[0], FINE)
    assert [row.occasion for row in claim(10)] == ["resolved"]


def test_the_body_says_what_was_true_when_it_was_made(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    announce_due()
    before = Delivery.objects.get().body
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    assert Delivery.objects.get(occasion="firing").body == before
    assert '"status":"firing"' in before


def test_a_failure_is_tried_again_later_and_given_up_in_the_end(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    announce_due()
    for number in range(outbox.MAX_ATTEMPTS):
        (row,) = claim(10)
        failed_at = timezone.now()
        outbox.failed(row, BAD)
        row.refresh_from_db()
        if number < outbox.MAX_ATTEMPTS - 1:
            assert row.due_at > failed_at
            assert claim(10, now=failed_at) == []
        Delivery.objects.update(due_at=timezone.now())
    assert row.state == DeliveryState.FAILED
    assert row.log.count() == outbox.MAX_ATTEMPTS
    assert Channel.objects.get().enabled


def test_waits_double_are_spread_and_end() -> None:
    assert [wait_before_s(n, 1.0) for n in range(1, 5)] == [2, 4, 8, 16]
    assert wait_before_s(3, 0.0) == 4
    assert wait_before_s(500, 1.0) == 600


def test_a_receiver_may_ask_for_a_longer_wait(channel: Callable[..., Channel], alert: Alert) -> None:
    channel()
    announce_due()
    (row,) = claim(10)
    failed_at = timezone.now()
    outbox.failed(row, BAD, retry_after_s=120)
    row.refresh_from_db()
    assert row.due_at >= failed_at + timedelta(seconds=120)


def test_several_refusals_in_a_row_disable_a_channel(channel: Callable[..., Channel], alert: Alert) -> None:
    hook = channel()
    announce_due()
    refusal = Attempt(0.1, 404, "The receiver answers 404.")
    for _ in range(outbox.MAX_REFUSALS):
        (row,) = claim(10)
        outbox.failed(row, refusal, refused=True)
        Delivery.objects.update(due_at=timezone.now())
    hook.refresh_from_db()
    assert not hook.enabled
    assert hook.disabled_reason == "5 answers in a row: The receiver answers 404."
    assert AuditEntry.objects.filter(action="channel.disable", object_name="hook").exists()


def test_a_success_forgets_refusals(channel: Callable[..., Channel], alert: Alert) -> None:
    hook = channel()
    announce_due()
    Channel.objects.update(refusals=4)
    (row,) = claim(10)
    outbox.delivered(row, FINE)
    hook.refresh_from_db()
    assert hook.refusals == 0


def test_what_can_never_work_disables_at_once_and_drops_what_waits(
    channel: Callable[..., Channel], alert: Alert
) -> None:
    hook = channel()
    announce_due()
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    (row,) = claim(10)
    outbox.failed_for_good(row, Attempt(0.1, 410, "gone for good"))
    hook.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason) == (False, "gone for good")
    states = dict(Delivery.objects.values_list("occasion", "state"))
    assert states == {"firing": "failed", "resolved": "dropped"}


def test_enabling_again_tells_of_what_fires_now(channel: Callable[..., Channel], alert: Alert) -> None:
    hook = channel()
    announce_due()
    disable_channel(actor=OLGA, channel_id=hook.pk, reason="maintenance")
    assert Delivery.objects.get().state == DeliveryState.DROPPED
    enable_channel(actor=OLGA, channel_id=hook.pk)
    assert [d.state for d in Delivery.objects.order_by("sequence")] == ["dropped", "pending"]
