"""What can go wrong in the fleet's state.

::

    StateError
    ├── BookingFault     a booking was moved against its transition table (this program's fault)
    └── UnknownInstance  an instance that is not, or no longer, in the fleet
"""


class StateError(Exception):
    """Base of the state's errors; ``code`` is stable."""

    code = "state_error"


class BookingFault(StateError):
    """A booking was moved against its transition table."""

    code = "booking_fault"


class UnknownInstance(StateError):
    """The named instance is not in the fleet."""

    code = "unknown_instance"
