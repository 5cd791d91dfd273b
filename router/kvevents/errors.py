"""What can go wrong with KV events.

::

    KvEventError
    ├── DecodeError      a message that is no event batch (the engine's fault)
    ├── DiscoveryError   an engine described its event sources in a way that makes no sense (the engine's fault)
    └── ReplayError      a replay socket did not answer, or not in its protocol (the engine's fault)
"""


class KvEventError(Exception):
    """Base of the errors about KV events; ``code`` is stable."""

    code = "kv_events"


class DecodeError(KvEventError):
    """A message that is no event batch."""

    code = "kv_events_decode"


class DiscoveryError(KvEventError):
    """A description of event sources that makes no sense."""

    code = "kv_events_discovery"


class ReplayError(KvEventError):
    """A replay socket that did not answer, or not in its protocol."""

    code = "kv_events_replay"
