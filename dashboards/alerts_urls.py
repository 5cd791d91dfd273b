"""Pages below /alerts/."""

from django.urls import path

from dashboards.views import alerts, channels, silences

urlpatterns = [
    path("", alerts.page, name="alerts"),
    path("+rows/", alerts.rows, name="alerts-rows"),
    path("+frame/", alerts.frame, name="alerts-frame"),
    path("+bulk/", alerts.bulk, name="alerts-bulk"),
    path("silences/", silences.page, name="silences"),
    path("silences/+preview/", silences.preview, name="silence-preview"),
    path("silences/<uuid:silence_id>/end/", silences.end, name="silence-end"),
    path("channels/", channels.page, name="channels"),
    path("channels/+new/<str:kind>/", channels.create, name="channel-create"),
    path("channels/<uuid:channel_id>/", channels.detail, name="channel"),
    path("channels/<uuid:channel_id>/log/", channels.log, name="channel-log"),
    path("channels/<uuid:channel_id>/change/", channels.change, name="channel-change"),
    path("channels/<uuid:channel_id>/<str:action>/", channels.act, name="channel-act"),
    path("<uuid:alert_id>/", alerts.detail, name="alert"),
    path("<uuid:alert_id>/state/", alerts.state, name="alert-state"),
    path("<uuid:alert_id>/story/", alerts.story, name="alert-story"),
    path("<uuid:alert_id>/<str:action>/", alerts.act, name="alert-act"),
]
