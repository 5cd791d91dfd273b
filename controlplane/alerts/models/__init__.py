"""Rows of the alerts app, one kind a file."""

from controlplane.alerts.models.alert import Alert
from controlplane.alerts.models.change import Change
from controlplane.alerts.models.channel import Channel, ChannelKind
from controlplane.alerts.models.delivery import Delivery, DeliveryAttempt, DeliveryState, Occasion
from controlplane.alerts.models.evaluation import Evaluation, Suspicion
from controlplane.alerts.models.kind_settings import KindSettings
from controlplane.alerts.models.silence import Silence
from controlplane.alerts.models.thread import ChannelThread
from controlplane.alerts.models.timeline_entry import TimelineEntry
from controlplane.alerts.models.watched_class import WatchedClass

__all__ = [
    "Alert",
    "Change",
    "Channel",
    "ChannelKind",
    "ChannelThread",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryState",
    "Evaluation",
    "KindSettings",
    "Occasion",
    "Silence",
    "Suspicion",
    "TimelineEntry",
    "WatchedClass",
]
