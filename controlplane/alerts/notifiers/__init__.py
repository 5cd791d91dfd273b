"""Every kind of channel, one file each, in one table."""

from collections.abc import Mapping

from controlplane.alerts.notifiers.base import Notifier
from controlplane.alerts.notifiers.email import EmailNotifier
from controlplane.alerts.notifiers.slack import SlackNotifier
from controlplane.alerts.notifiers.webhook import WebhookNotifier

NOTIFIERS: Mapping[str, Notifier] = {
    notifier.kind.value: notifier for notifier in (WebhookNotifier(), SlackNotifier(), EmailNotifier())
}
