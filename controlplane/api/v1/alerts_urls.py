"""Paths of alerts, silences and channels below /api/v1/."""

from django.urls import path

from controlplane.api.v1 import alerts, alerts_channels, alerts_kinds, alerts_silences

urlpatterns = [
    path("alerts/", alerts.Alerts.as_view(), name="alerts"),
    path("alerts/bulk/", alerts.AlertBulk.as_view(), name="alerts-bulk"),
    path("alerts/<uuid:alert_id>/", alerts.AlertDetail.as_view(), name="alert"),
    path("alerts/<uuid:alert_id>/acknowledge/", alerts.AlertAcknowledge.as_view(), name="alert-acknowledge"),
    path("alerts/<uuid:alert_id>/resolve/", alerts.AlertResolve.as_view(), name="alert-resolve"),
    path("alerts/<uuid:alert_id>/assign/", alerts.AlertAssign.as_view(), name="alert-assign"),
    path("alerts/<uuid:alert_id>/comment/", alerts.AlertComment.as_view(), name="alert-comment"),
    path("alert-kinds/", alerts_kinds.AlertKinds.as_view(), name="alert-kinds"),
    path("alert-kinds/<str:name>/", alerts_kinds.AlertKind.as_view(), name="alert-kind"),
    path("silences/", alerts_silences.Silences.as_view(), name="silences"),
    path("silences/preview/", alerts_silences.SilencePreview.as_view(), name="silence-preview"),
    path("silences/<uuid:silence_id>/", alerts_silences.SilenceDetail.as_view(), name="silence"),
    path("channels/", alerts_channels.Channels.as_view(), name="channels"),
    path("channels/<uuid:channel_id>/", alerts_channels.ChannelDetail.as_view(), name="channel"),
    path("channels/<uuid:channel_id>/test/", alerts_channels.ChannelTest.as_view(), name="channel-test"),
    path("channels/<uuid:channel_id>/enable/", alerts_channels.ChannelEnable.as_view(), name="channel-enable"),
    path("channels/<uuid:channel_id>/disable/", alerts_channels.ChannelDisable.as_view(), name="channel-disable"),
    path("channels/<uuid:channel_id>/deliveries/", alerts_channels.ChannelDeliveries.as_view(), name="deliveries"),
]
