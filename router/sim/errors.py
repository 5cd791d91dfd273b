"""What can go wrong in the laboratory.

::

    SimError
    ├── EngineFault      the engine model was driven against its contract (the caller's fault)
    ├── RequestTooLarge  a request that can never fit into an engine's KV cache (the request's fault)
    ├── TraceError       a trace that cannot be read; names file and line (the trace's fault)
    ├── ProfileError     an unknown hardware profile, or rows that no profile fits (the user's fault)
    └── ScenarioError    a scenario that cannot be run (the user's fault)
"""


class SimError(Exception):
    """Base of the laboratory's errors; ``code`` is stable."""

    code = "sim_error"


class EngineFault(SimError):
    """The engine model was driven against its contract."""

    code = "engine_fault"


class RequestTooLarge(SimError):
    """Prompt and output together exceed the KV capacity of the engine."""

    code = "request_too_large"


class TraceError(SimError):
    """A trace that cannot be read."""

    code = "trace_error"

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


class ProfileError(SimError):
    """An unknown hardware profile, or measured rows that no profile fits."""

    code = "profile_error"


class ScenarioError(SimError):
    """A scenario that cannot be run."""

    code = "scenario_error"
