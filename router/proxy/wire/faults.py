"""What can be wrong with bytes on a connection; the type says whose fault it is.

::

    WireFault
    ├── RequestFault   the client's bytes (answered with ``status``, then the connection is closed)
    └── AnswerFault    the engine's bytes (the connection is closed; nothing of them is trusted)
"""


class WireFault(Exception):
    """Bytes that are not the HTTP they claim to be; ``code`` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestFault(WireFault):
    """A request that cannot be read safely; ``status`` is what its sender is told."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message)
        self.status = status


class AnswerFault(WireFault):
    """An answer that cannot be read safely."""
