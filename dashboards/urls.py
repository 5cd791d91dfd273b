"""Pages; included by ``controlplane.urls`` at the root."""

from django.urls import path

from dashboards.views import decisions, live

app_name = "dashboards"

urlpatterns = [
    path("", live.page, name="live"),
    path("live/frame/", live.frame, name="live-frame"),
    path("decisions/", decisions.page, name="decisions"),
    path("decisions/newer/", decisions.newer, name="decisions-newer"),
    path("decisions/<path:request_id>/", decisions.detail, name="decision"),
]
