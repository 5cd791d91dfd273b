"""The socket behind the badge in the rail and the alerts page."""

from controlplane.alerts.feed import alerts_feed
from dashboards.consumers import ScoresConsumer


class AlertsConsumer(ScoresConsumer):
    """Sends everything that is open whenever something about alerts changes."""

    async def _send_frames(self) -> None:
        with alerts_feed().subscribe() as slot:
            while True:
                await self.send(text_data=await slot.take())
