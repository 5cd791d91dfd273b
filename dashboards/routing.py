"""WebSocket routes; ``controlplane.asgi`` wraps them in session authentication."""

from django.urls import path

from dashboards.alerts_consumer import AlertsConsumer
from dashboards.consumers import ScoresConsumer

websocket_urlpatterns = [
    path("ws/scores/", ScoresConsumer.as_asgi()),
    path("ws/alerts/", AlertsConsumer.as_asgi()),
]
