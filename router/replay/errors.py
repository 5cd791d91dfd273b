"""What can go wrong in a replay.

::

    ReplayError
    ├── TargetError        an address that cannot be replayed to (the user's fault)
    ├── OptionError        options that contradict each other (the user's fault)
    └── ExchangeError      one request failed; counted under its ``kind``, never raised to the user
"""


class ReplayError(Exception):
    """Base of the replayer's errors; ``code`` is stable."""

    code = "replay_error"


class TargetError(ReplayError):
    """The target is no HTTP address."""

    code = "replay_target"


class OptionError(ReplayError):
    """Options that contradict each other."""

    code = "replay_options"


class ExchangeError(ReplayError):
    """One request failed; ``kind`` is the short name it is counted under."""

    code = "replay_exchange"

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail or kind)
        self.kind = kind
