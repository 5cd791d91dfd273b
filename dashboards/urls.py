"""Pages; included by ``controlplane.urls`` at the root."""

from django.urls import path

from dashboards.views import live

app_name = "dashboards"

urlpatterns = [
    path("", live.page, name="live"),
    path("live/frame/", live.frame, name="live-frame"),
]
