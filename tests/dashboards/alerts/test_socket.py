"""The socket of alerts: the present at once, and changes as they come, whoever made them."""

from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import AnonymousUser

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts import changes, feed
from controlplane.alerts.feed import AlertsFrame, alerts_feed
from controlplane.alerts.models import Change
from controlplane.alerts.services import handling
from dashboards.alerts_consumer import AlertsConsumer
from dashboards.consumers import UNAUTHENTICATED
from tests.dashboards.alerts.conftest import fire
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


class SignedIn:
    """As much of a person as the socket asks for."""

    is_authenticated = True


class Talk(ApplicationCommunicator):
    """A browser's end of the socket."""

    def __init__(self, user: Any) -> None:
        super().__init__(
            AlertsConsumer.as_asgi(), {"type": "websocket", "path": "/ws/alerts/", "headers": [], "user": user}
        )

    async def connect(self) -> None:
        """Shake hands."""
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(PATIENCE_S))["type"] == "websocket.accept"

    async def receive_frame(self) -> AlertsFrame:
        """Wait for the next frame."""
        message = await self.receive_output(PATIENCE_S)
        assert message["type"] == "websocket.send"
        return msgspec.json.decode(message["text"], type=AlertsFrame)

    async def disconnect(self) -> None:
        """Close the tab."""
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(PATIENCE_S)


async def test_strangers_are_told_by_a_close_code() -> None:
    talk = Talk(AnonymousUser())
    await talk.connect()
    closed = await talk.receive_output(PATIENCE_S)
    assert (closed["type"], closed["code"]) == ("websocket.close", UNAUTHENTICATED)
    await talk.disconnect()


async def test_the_present_comes_at_once_and_changes_as_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CHECK_INTERVAL_S", 3600)  # only the wake of this process is left
    alert = await sync_to_async(fire)()
    talk = Talk(SignedIn())
    await talk.connect()
    first = await talk.receive_frame()
    assert (first.firing, first.acknowledged, [row.id for row in first.alerts]) == (1, 0, [str(alert.pk)])
    await sync_to_async(handling.acknowledge)(actor=SYSTEM, alert_id=alert.pk)
    second = await talk.receive_frame()
    assert (second.firing, second.acknowledged) == (0, 1)
    assert second.change > first.change
    await talk.disconnect()


async def test_changes_of_other_processes_are_seen_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(SignedIn())
    await talk.connect()
    assert (await talk.receive_frame()).firing == 0
    monkeypatch.setattr(changes, "_tell", lambda: None)  # as if somebody else had committed
    await sync_to_async(fire)()
    assert (await talk.receive_frame()).firing == 1
    await talk.disconnect()


async def test_nothing_is_read_while_nobody_looks() -> None:
    talk = Talk(SignedIn())
    await talk.connect()
    await talk.receive_frame()
    await talk.disconnect()
    assert alerts_feed()._task is None


async def test_a_database_that_is_away_for_a_moment_ends_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(SignedIn())
    await talk.connect()
    await talk.receive_frame()
    monkeypatch.setattr(alerts_feed(), "_number", lambda: 1 / 0)
    alerts_feed().wake()
    await sync_to_async(fire)()
    monkeypatch.undo()
    assert (await talk.receive_frame()).firing == 1
    assert await Change.objects.acount() == 1
    await talk.disconnect()
