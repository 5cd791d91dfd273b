"""What can go wrong inside the core.

::

    CoreError
    ├── InvalidPolicy      a policy that no scorer can serve (the author's fault)
    ├── ScorerFault        a scorer returned something that is not a finite number (the plug-in's fault)
    ├── CounterFault       a counter would become negative (this program's fault)
    └── PrefixIndexFault   the prefix index contradicts itself (this program's fault)
"""


class CoreError(Exception):
    """Base of the core's errors; ``code`` is stable."""

    code = "core_error"


class InvalidPolicy(CoreError):
    """A policy names an unknown scorer or parameter, or a value out of range."""

    code = "invalid_policy"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
        """The field of the policy that is at fault; empty where it is none."""


class ScorerFault(CoreError):
    """A scorer broke its contract; the message names the scorer and the instance."""

    code = "scorer_fault"


class CounterFault(CoreError):
    """A counter would become negative: something was released twice or never booked."""

    code = "counter_fault"


class PrefixIndexFault(CoreError):
    """The prefix index contradicts itself; only its integrity check raises this."""

    code = "prefix_index_fault"
