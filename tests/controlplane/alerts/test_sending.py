"""Sending to real receivers that succeed, fail, hang, and are gone."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from controlplane.alerts.models import Alert, Channel, ChannelKind, Delivery, DeliveryState
from controlplane.alerts.notifiers import base, outbound
from controlplane.alerts.sending import send_due
from controlplane.alerts.services import handling
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.channels import ChannelSpec, create_channel, try_channel
from controlplane.alerts.services.raising import raise_alert
from tests.controlplane.alerts.conftest import OLGA, finding
from tests.controlplane.own_thread import in_own_thread
from tests.fakes.mail_server import MailServer
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "a key of more than sixteen characters"


async def make(kind: ChannelKind, **settings: Any) -> Channel:
    """Make a channel."""
    spec = ChannelSpec(name="it", kind=kind, settings=settings)
    return await sync_to_async(create_channel)(actor=OLGA, spec=spec)


async def fire() -> Alert:
    """Raise an alert and announce it."""
    alert = await sync_to_async(raise_alert)(finding=finding())
    await sync_to_async(announce_due)()
    return alert


async def send() -> int:
    """Send what is due, as the task does: in a thread of its own."""
    return await in_own_thread(send_due)


async def outcome() -> tuple[str, list[tuple[bool, int | None]], Channel]:
    """Return the state of the only notification, its attempts, and its channel."""
    row = await Delivery.objects.select_related("channel").aget()
    log = [(attempt.ok, attempt.status) async for attempt in row.log.all()]
    return row.state, log, row.channel


async def test_a_webhook_gets_alertmanagers_json_signed() -> None:
    async with Receiver() as receiver:
        await make(ChannelKind.WEBHOOK, url=receiver.url, signing_key=KEY, authorization="Bearer x")
        alert = await fire()
        assert await send() == 1
        (got,) = receiver.got
    body = json.loads(got.body)
    assert (body["version"], body["status"], body["receiver"], body["truncatedAlerts"]) == ("4", "firing", "it", 0)
    (one,) = body["alerts"]
    assert one["labels"] == {"alertname": "stale_metrics", "severity": "warning", "instance": "gpu-1"}
    assert one["endsAt"] == "0001-01-01T00:00:00Z"
    assert one["generatorURL"].endswith(f"/alerts/{alert.pk}/")
    assert "what_to_do" in one["annotations"]
    stamp = got.headers["x-pointsman-timestamp"]
    expected = hmac.new(KEY.encode(), stamp.encode() + b"." + got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-pointsman-signature"] == f"v1={expected}"
    assert got.headers["authorization"] == "Bearer x"
    assert got.headers["idempotency-key"] == str((await Delivery.objects.aget()).pk)
    assert (await outcome())[:2] == (DeliveryState.DELIVERED, [(True, 200)])


async def test_a_resolution_says_when_it_ended() -> None:
    async with Receiver() as receiver:
        await make(ChannelKind.WEBHOOK, url=receiver.url)
        alert = await fire()
        await send()
        await sync_to_async(handling.resolve)(actor=OLGA, alert_id=alert.pk)
        await send()
    first, last = (json.loads(got.body) for got in receiver.got)
    assert (first["status"], last["status"]) == ("firing", "resolved")
    assert last["alerts"][0]["endsAt"] > last["alerts"][0]["startsAt"]
    assert last["groupKey"] == first["groupKey"]


@pytest.mark.parametrize(
    ("status", "state", "enabled"),
    [
        (500, DeliveryState.PENDING, True),
        (429, DeliveryState.PENDING, True),
        (404, DeliveryState.PENDING, True),
        (302, DeliveryState.PENDING, True),
        (400, DeliveryState.FAILED, True),
        (410, DeliveryState.FAILED, False),
    ],
)
async def test_each_answer_has_its_consequence(status: int, state: DeliveryState, enabled: bool) -> None:
    async with Receiver([status]) as receiver:
        await make(ChannelKind.WEBHOOK, url=receiver.url)
        await fire()
        await send()
    found, log, channel = await outcome()
    assert (found, log, channel.enabled) == (state, [(False, status)], enabled)
    assert bool(channel.disabled_reason) is not enabled


async def test_a_retry_is_the_same_notification() -> None:
    async with Receiver([503, 200]) as receiver:
        await make(ChannelKind.WEBHOOK, url=receiver.url)
        await fire()
        await send()
        await Delivery.objects.aupdate(due_at=(await Delivery.objects.aget()).created_at)
        await send()
    first, second = receiver.got
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert (await outcome())[:2] == (DeliveryState.DELIVERED, [(False, 503), (True, 200)])


async def test_a_receiver_that_hangs_is_given_up_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "ATTEMPT_TIMEOUT_S", 2.0)
    async with Receiver([None]) as hanging, Receiver() as fine:
        await make(ChannelKind.WEBHOOK, url=hanging.url)
        spec = ChannelSpec(name="fine", kind=ChannelKind.WEBHOOK, settings={"url": fine.url})
        await sync_to_async(create_channel)(actor=OLGA, spec=spec)
        await fire()
        assert await send() == 2
        assert len(fine.got) == 1
    states = {row.channel.name: row async for row in Delivery.objects.select_related("channel")}
    assert states["fine"].state == DeliveryState.DELIVERED
    assert states["it"].state == DeliveryState.PENDING
    assert states["it"].last_error == "No complete answer within 2 s."


async def test_nobody_listens() -> None:
    await make(ChannelKind.WEBHOOK, url="http://127.0.0.1:1/hook")
    await fire()
    await send()
    found, log, channel = await outcome()
    assert (found, log, channel.enabled) == (DeliveryState.PENDING, [(False, None)], True)


async def test_a_name_that_leads_to_a_metadata_service_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    await make(ChannelKind.WEBHOOK, url="http://hooks.example/x")
    await fire()

    async def leads_astray(*_: object, **__: object) -> list[tuple[Any, ...]]:
        return [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", leads_astray)
    await send()
    found, _, channel = await outcome()
    assert (found, channel.enabled) == (DeliveryState.FAILED, False)
    assert "metadata" in channel.disabled_reason


async def test_settings_sealed_under_another_key_disable_the_channel(settings: Any) -> None:
    await make(ChannelKind.WEBHOOK, url="http://127.0.0.1:1/hook")
    await fire()
    settings.SECRET_KEY = "another signing key that is long enough to be one"
    await send()
    found, _, channel = await outcome()
    assert (found, channel.enabled) == (DeliveryState.FAILED, False)
    assert "another POINTSMAN_SECRET_KEY" in channel.disabled_reason


async def test_slack_gets_one_message_that_changes() -> None:
    answer = json.dumps({"ok": True, "ts": "17.5", "channel": "C1"}).encode()
    async with Receiver(body=answer) as receiver:
        await make(ChannelKind.SLACK, token="xoxb-1", channel="#gpu", api_url=receiver.url)
        alert = await fire()
        await send()
        await sync_to_async(handling.acknowledge)(actor=OLGA, alert_id=alert.pk)
        await send()
        await sync_to_async(handling.resolve)(actor=OLGA, alert_id=alert.pk)
        await send()
    assert [got.path.rpartition("/")[2] for got in receiver.got] == ["chat.postMessage", "chat.update", "chat.update"]
    first, second, third = (json.loads(got.body) for got in receiver.got)
    assert first["channel"] == "#gpu"
    assert "ts" not in first
    assert (second["channel"], second["ts"]) == (third["channel"], third["ts"]) == ("C1", "17.5")
    assert first["text"].startswith("Firing")
    assert second["text"].startswith("Acknowledged")
    assert third["text"].startswith("Resolved")
    assert receiver.got[0].headers["authorization"] == "Bearer xoxb-1"


async def lost_and_sent_again() -> None:
    """Have the first attempt killed after it was claimed, and its claim run out."""
    await fire()
    await Delivery.objects.aupdate(attempts=1, claim=uuid4(), claimed_until=timezone.now())
    await send()


async def test_a_first_message_that_a_killed_process_posted_is_found_and_not_posted_again() -> None:
    async with Receiver() as receiver:
        await make(ChannelKind.SLACK, token="xoxb-1", channel="C1", api_url=receiver.url)
        alert = await fire()
        row = await Delivery.objects.aget()
        sent = {"ts": "17.5", "metadata": {"event_type": "x", "event_payload": {"notification": str(row.pk)}}}
        receiver.body = json.dumps({"ok": True, "messages": [{"ts": "18.0"}, sent]}).encode()
        await Delivery.objects.aupdate(attempts=1, claim=uuid4(), claimed_until=timezone.now())
        await send()
        assert (await outcome())[0] == DeliveryState.DELIVERED
        receiver.body = json.dumps({"ok": True, "ts": "17.5", "channel": "C1"}).encode()
        await sync_to_async(handling.resolve)(actor=OLGA, alert_id=alert.pk)
        await send()
    looked, changed = receiver.got
    assert looked.path.endswith("/conversations.history")
    asked = dict(parse_qsl(looked.body.decode()))
    assert (asked["channel"], asked["include_all_metadata"]) == ("C1", "true")
    assert float(asked["oldest"]) <= row.created_at.timestamp()
    assert changed.path.endswith("/chat.update")
    assert json.loads(changed.body)["ts"] == "17.5"


@pytest.mark.parametrize(
    "history",
    [
        {"ok": False, "error": "missing_scope"},
        {"ok": True, "messages": [{"ts": "1"}, {"ts": "2", "metadata": {"event_payload": {"notification": "other"}}}]},
    ],
)
async def test_where_it_is_not_found_or_nobody_may_look_it_is_posted_with_its_mark(history: dict[str, Any]) -> None:
    async with Receiver(body=json.dumps(history | {"channel": "C1"}).encode()) as receiver:
        await make(ChannelKind.SLACK, token="xoxb-1", channel="C1", api_url=receiver.url)
        await lost_and_sent_again()
    looked, posted = receiver.got
    assert (looked.path.rpartition("/")[2], posted.path.rpartition("/")[2]) == (
        "conversations.history",
        "chat.postMessage",
    )
    row = await Delivery.objects.aget()
    assert json.loads(posted.body)["metadata"]["event_payload"] == {"notification": str(row.pk)}


@pytest.mark.parametrize(("error", "enabled"), [("invalid_auth", False), ("ratelimited", True)])
async def test_slack_says_no_with_status_200(error: str, enabled: bool) -> None:
    async with Receiver(body=json.dumps({"ok": False, "error": error}).encode()) as receiver:
        await make(ChannelKind.SLACK, token="xoxb-1", channel="#gpu", api_url=receiver.url)
        await fire()
        await send()
    _, _, channel = await outcome()
    assert channel.enabled is enabled


async def test_mails_of_one_alert_are_a_thread() -> None:
    async with MailServer() as server:
        await make(
            ChannelKind.EMAIL,
            to=["ops@example.com"],
            sender="pointsman@example.com",
            host="127.0.0.1",
            port=server.port,
            security="none",
        )
        alert = await fire()
        await send()
        await sync_to_async(handling.resolve)(actor=OLGA, alert_id=alert.pk)
        await send()
    first, last = server.mails
    assert first["Subject"] == "[Pointsman] Warning: The engine of gpu-1 has not reported"
    assert last["Subject"].startswith("[Pointsman] Resolved")
    assert first["References"] == last["References"] == f"<alert-{alert.pk}@example.com>"
    assert first["Message-ID"] != last["Message-ID"]
    assert "What to do:" in first.get_content()


async def test_a_mail_that_nobody_takes_fails_without_disabling() -> None:
    async with MailServer(receiver_code=550) as server:
        await make(
            ChannelKind.EMAIL,
            to=["gone@example.com"],
            sender="pointsman@example.com",
            host="127.0.0.1",
            port=server.port,
            security="none",
        )
        await fire()
        await send()
    found, log, channel = await outcome()
    assert (found, log, channel.enabled) == (DeliveryState.FAILED, [(False, 550)], True)


async def test_the_test_button_is_in_the_log() -> None:
    async with Receiver() as receiver:
        made = await make(ChannelKind.WEBHOOK, url=receiver.url)
        await sync_to_async(try_channel)(actor=OLGA, channel_id=made.pk)
        await send()
        assert json.loads(receiver.got[0].body)["alerts"][0]["labels"]["alertname"] == "test"
    assert (await outcome())[:2] == (DeliveryState.DELIVERED, [(True, 200)])


def test_one_attempt_ends_before_its_claim_does() -> None:
    from controlplane.alerts.services.outbox import LEASE

    assert LEASE.total_seconds() >= 2 * base.ATTEMPT_TIMEOUT_S
