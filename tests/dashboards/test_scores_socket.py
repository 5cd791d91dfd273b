"""The socket of the live page: who may have it, and what comes."""

import asyncio
from typing import Any

import msgspec
import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import AnonymousUser

from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
from dashboards.consumers import UNAUTHENTICATED, ScoresConsumer
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S

# Channels looks after database connections before every message.
pytestmark = pytest.mark.django_db(transaction=True)


class SignedIn:
    """As much of a person as the socket asks for."""

    is_authenticated = True


class Talk(ApplicationCommunicator):
    """A browser's end of the socket."""

    def __init__(self, user: Any) -> None:
        scope = {"type": "websocket", "path": "/ws/scores/", "headers": []} | ({} if user is None else {"user": user})
        super().__init__(ScoresConsumer.as_asgi(), scope)

    async def connect(self) -> None:
        """Shake hands."""
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(PATIENCE_S))["type"] == "websocket.accept"

    async def receive_frame(self) -> Frame:
        """Wait for the next frame."""
        message = await self.receive_output(PATIENCE_S)
        assert message["type"] == "websocket.send"
        return msgspec.json.decode(message["text"], type=Frame)

    async def disconnect(self) -> None:
        """Close the tab."""
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(PATIENCE_S)


@pytest.mark.parametrize("user", [AnonymousUser(), None])
async def test_strangers_are_told_by_a_close_code(fresh_hub: Hub, user: Any) -> None:
    talk = Talk(user)
    await talk.connect()
    closed = await talk.receive_output(PATIENCE_S)
    assert (closed["type"], closed["code"]) == ("websocket.close", UNAUTHENTICATED)
    assert fresh_hub.feed.subscribers == 0
    await talk.disconnect()


async def test_a_person_gets_the_present_at_once_and_news_as_they_come(fresh_hub: Hub) -> None:
    worker = FakeWorker(3, 40.0)
    fresh_hub.accept(worker.step())
    talk = Talk(SignedIn())
    await talk.connect()
    first = await talk.receive_frame()
    assert [row.name for row in first.instances] == ["gpu-00", "gpu-01", "gpu-02"]
    fresh_hub.accept(worker.step())
    second = await talk.receive_frame()
    assert second.headline.requests > first.headline.requests
    await talk.disconnect()
    assert fresh_hub.feed.subscribers == 0


async def test_a_browser_that_does_not_read_gets_the_newest_frame_when_it_does(fresh_hub: Hub) -> None:
    with fresh_hub.feed.subscribe() as slot:
        first = await slot.take()
        for number in range(1_000):
            slot.put(f"frame {number}")
        assert await slot.take() == "frame 999"
        assert first != "frame 999"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slot.take(), 0.01)


async def test_what_a_browser_sends_is_ignored(fresh_hub: Hub) -> None:
    talk = Talk(SignedIn())
    await talk.connect()
    await talk.receive_frame()
    await talk.send_input({"type": "websocket.receive", "text": "anything"})
    assert (await talk.receive_frame()).instances == ()
    await talk.disconnect()
